package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/ruledoc"
)

// decision is a decision as the check API tells it.
type decision struct {
	ID           string   `json:"id"`
	Allowed      bool     `json:"allowed"`
	Cause        string   `json:"cause"`
	Mode         string   `json:"mode"`
	Cost         int64    `json:"cost"`
	DelayMS      int64    `json:"delay_ms"`
	RetryAfterMS *int64   `json:"retry_after_ms"`
	Revision     int64    `json:"revision"`
	BlockReason  string   `json:"block_reason"`
	Results      []result `json:"results"`
}

// result is what one limit said.
type result struct {
	Rule      string `json:"rule"`
	Action    string `json:"action"`
	Algorithm string `json:"algorithm"`
	Limit     int64  `json:"limit"`
	WindowMS  int64  `json:"window_ms"`
	Burst     int64  `json:"burst"`
	Allowed   bool   `json:"allowed"`
	Mode      string `json:"mode"`
	Remaining int64  `json:"remaining"`
	ResetMS   int64  `json:"reset_after_ms"`
}

func newCheck() *cobra.Command {
	var c client
	var peek bool
	cmd := &cobra.Command{
		Use:   "check NAME=VALUE...",
		Short: "Ask a node whether a request may pass, and charge it",
		Long: `check asks a running node as any service would. It exits with 0 when the request may pass and with 3 when it is refused.

` + requestHelp,
		Example: `  sluice check user=u_42 route=/api/search method=GET
  sluice check --peek user=u_42 route=/api/search
  sluice check user=u_42 cost=5 plan=trial --output json`,
		ValidArgsFunction: completeRequest,
		RunE: func(cmd *cobra.Command, args []string) error {
			req, err := parseRequest(args)
			if err != nil {
				return err
			}
			path := "/v1/check"
			if peek {
				path = "/v1/peek"
			}
			answer, err := c.ask(cmd.Context(), http.MethodPost, path, req)
			if err != nil {
				return err
			}
			return c.printDecision(cmd.OutOrStdout(), answer)
		},
	}
	cmd.Flags().BoolVar(&peek, "peek", false, "charge nothing")
	c.dataFlags(cmd)
	return cmd
}

func (c *client) printDecision(w io.Writer, answer []byte) error {
	var d decision
	if err := json.Unmarshal(answer, &d); err != nil {
		return fmt.Errorf("the node's answer is no decision: %w", err)
	}
	var err error
	if c.output.json() {
		_, err = w.Write(answer)
	} else {
		err = d.print(w)
	}
	if err == nil && !d.Allowed {
		return refusedError{}
	}
	return err
}

// print tells a decision to people.
func (d *decision) print(w io.Writer) error {
	_, _ = fmt.Fprintln(w, d.summary())
	if len(d.Results) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "RULE\tLIMIT\tLEFT\tALL BACK IN\tSAYS\tMODE")
	for _, r := range d.Results {
		says := "pass"
		if !r.Allowed {
			says = "refuse"
		}
		if r.Action == "shadow" {
			says += " (shadow)"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\n", r.Rule, r.limit(), r.Remaining, ms(r.ResetMS), says, r.Mode)
	}
	return table.Flush()
}

// summary is the verdict in a line.
func (d *decision) summary() string {
	var b strings.Builder
	switch {
	case d.Allowed && d.DelayMS > 0:
		fmt.Fprintf(&b, "allowed after %s", ms(d.DelayMS))
	case d.Allowed:
		b.WriteString("allowed")
	case d.RetryAfterMS == nil:
		b.WriteString("refused: waiting does not help")
	default:
		fmt.Fprintf(&b, "refused: try again in %s", ms(*d.RetryAfterMS))
	}
	if d.Cause != "limits" {
		fmt.Fprintf(&b, " (%s)", strings.ReplaceAll(d.Cause, "_", " "))
	}
	if d.BlockReason != "" {
		fmt.Fprintf(&b, ": %s", printable(d.BlockReason))
	}
	if d.Mode != "exact" {
		fmt.Fprintf(&b, " [%s: the counter store does not answer]", d.Mode)
	}
	return b.String()
}

func (r *result) limit() string {
	if r.Limit == 0 {
		return "-"
	}
	text := fmt.Sprintf("%d per %s %s", r.Limit, ruledoc.Duration(ms(r.WindowMS)), r.Algorithm)
	if r.Burst > 0 {
		text += fmt.Sprintf(", burst %d", r.Burst)
	}
	return text
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
