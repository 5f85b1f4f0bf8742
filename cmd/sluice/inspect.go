package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// inspection is what the admin listener tells of a subject.
type inspection struct {
	Namespace string `json:"namespace"`
	Tier      string `json:"tier"`
	Exempt    bool   `json:"exempt"`
	Blocked   *struct {
		Reason string    `json:"reason"`
		Until  time.Time `json:"until"`
	} `json:"blocked"`
	Counters []struct {
		Rule     string            `json:"rule"`
		Applies  bool              `json:"applies"`
		CountsBy map[string]string `json:"counts_by"`
		Limit    struct {
			Algorithm string `json:"algorithm"`
			Limit     int64  `json:"limit"`
			Window    string `json:"window"`
		} `json:"limit"`
		Key        string `json:"key"`
		Used       int64  `json:"used"`
		Remaining  int64  `json:"remaining"`
		ResetAfter int64  `json:"reset_after_ms"`
		Error      string `json:"error"`
	} `json:"counters"`
	Untold []struct {
		Rule  string   `json:"rule"`
		Needs []string `json:"needs"`
	} `json:"untold"`
}

func newInspect() *cobra.Command {
	var c client
	cmd := &cobra.Command{
		Use:   "inspect NAME=VALUE...",
		Short: "Show the rules, counters and Redis keys of a subject now",
		Long: `inspect shows every counter that a node can name for a subject: the rule, what is left, and the key in Redis. Nothing is
charged. It needs the admin token, in SLUICE_ADMIN__TOKEN or SLUICE_ADMIN__TOKEN_FILE.

` + requestHelp,
		Example:           "  sluice inspect user=u_42",
		ValidArgsFunction: completeRequest,
		RunE: func(cmd *cobra.Command, args []string) error {
			req, err := parseRequest(args)
			if err != nil {
				return err
			}
			answer, err := c.ask(cmd.Context(), http.MethodGet, "/v1/inspect?"+req.query().Encode(), nil)
			if err != nil || c.output.json() {
				_, _ = cmd.OutOrStdout().Write(answer)
				return err
			}
			var i inspection
			if err := json.Unmarshal(answer, &i); err != nil {
				return fmt.Errorf("the node's answer tells no counters: %w", err)
			}
			return i.print(cmd.OutOrStdout())
		},
	}
	c.adminFlags(cmd)
	return cmd
}

// print tells it to people.
func (i *inspection) print(w io.Writer) error {
	if i.Tier != "" {
		_, _ = fmt.Fprintln(w, "tier:", printable(i.Tier))
	}
	if i.Exempt {
		_, _ = fmt.Fprintln(w, "exempt from every rule")
	}
	if i.Blocked != nil {
		_, _ = fmt.Fprintln(w, "blocked:", printable(i.Blocked.Reason), when(i.Blocked.Until))
	}
	t := newTable("RULE", "COUNTS BY", "LIMIT", "USED", "LEFT", "ALL BACK IN", "APPLIES", "KEY")
	for _, c := range i.Counters {
		var by []string
		for name, value := range c.CountsBy {
			by = append(by, name+"="+value)
		}
		slices.Sort(by)
		applies := "no"
		if c.Applies {
			applies = "yes"
		}
		if c.Error != "" {
			applies = c.Error
		}
		t.row(c.Rule, strings.Join(by, " "), fmt.Sprintf("%d per %s %s", c.Limit.Limit, c.Limit.Window, c.Limit.Algorithm),
			strconv.FormatInt(c.Used, 10), strconv.FormatInt(c.Remaining, 10), ms(c.ResetAfter).String(), applies, c.Key)
	}
	if err := t.print(w); err != nil {
		return err
	}
	for _, u := range i.Untold {
		_, _ = fmt.Fprintf(w, "rule %s counts by more than was told: %s\n", printable(u.Rule), strings.Join(u.Needs, ", "))
	}
	return nil
}
