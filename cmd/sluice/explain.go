package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func newExplain() *cobra.Command {
	var c client
	cmd := &cobra.Command{
		Use:   "explain NAME=VALUE...",
		Short: "Tell which rules match a request, why the others do not, and what is left",
		Long: `explain asks a running node what it would decide about a request, and why. Nothing is charged.

` + requestHelp,
		Example: `  sluice explain user=u_42 route=/api/search
  sluice explain ip=203.0.113.9 route=/login method=POST --output json`,
		ValidArgsFunction: completeRequest,
		RunE: func(cmd *cobra.Command, args []string) error {
			req, err := parseRequest(args)
			if err != nil {
				return err
			}
			answer, err := c.ask(cmd.Context(), http.MethodPost, "/v1/explain", req)
			if err != nil {
				return err
			}
			return c.printExplanation(cmd.OutOrStdout(), answer)
		},
	}
	c.dataFlags(cmd)
	return cmd
}

func (c *client) printExplanation(w io.Writer, answer []byte) error {
	if c.output.json() {
		_, err := w.Write(answer)
		return err
	}
	var e struct {
		Decision decision `json:"decision"`
		Reason   string   `json:"reason"`
		Rules    []struct {
			Rule    string `json:"rule"`
			Layer   string `json:"layer"`
			Matches bool   `json:"matches"`
			Applies bool   `json:"applies"`
			Why     string `json:"why"`
		} `json:"rules"`
	}
	if err := json.Unmarshal(answer, &e); err != nil {
		return fmt.Errorf("the node's answer is no explanation: %w", err)
	}
	_, _ = fmt.Fprintf(w, "%s\n\n", e.Reason)
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "LAYER\tRULE\tAPPLIES\tWHY")
	for _, r := range e.Rules {
		applies := "no"
		if r.Applies {
			applies = "yes"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", r.Layer, r.Rule, applies, r.Why)
	}
	if err := table.Flush(); err != nil || len(e.Decision.Results) == 0 {
		return err
	}
	_, _ = fmt.Fprintln(w)
	return e.Decision.print(w)
}
