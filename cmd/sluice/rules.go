package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

func newRules() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "Show, change and try the rules of a cluster",
		Long: `rules works on the rules that a cluster keeps in its database, through the admin listener of any node. Changes act on every node at
once, and are written to the history with their author and reason. "rules test" needs no cluster.`,
		Example: `  sluice rules list
  sluice rules apply -f rules.d/ --reason "launch week"
  sluice rules test -f rules.d/ traces/`,
	}
	cmd.AddCommand(newRulesList(), newRulesGet(), newRulesApply(), newRulesDiff(), newRulesDelete(), newRulesHistory(), newRulesRollback(), newRulesTest())
	return cmd
}

func newRulesList() *cobra.Command {
	var c control
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the rules of a namespace",
		Long:  `list shows the rules of a namespace. With --output toml it writes a rules file with all of them, which "rules apply" takes back.`,
		Example: `  sluice rules list
  sluice rules list --namespace payments --output toml > payments.toml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			namespace, err := c.in()
			if err != nil {
				return err
			}
			at := path("namespaces", namespace, "rules")
			if c.output.value == "toml" {
				c.limit = 0 // half a file, applied with --prune, would delete the other half
				rules, _, err := listed[registry.Rule](cmd.Context(), &c, at, nil)
				if err != nil {
					return err
				}
				return writeTOML(cmd.OutOrStdout(), rules...)
			}
			t := newTable("NAME", "PRIORITY", "COUNTS BY", "LIMITS", "ACTION", "VERSION", "CHANGED", "BY")
			return printList(cmd, &c, at, nil, t, func(r *registry.Rule) { ruleRow(t, r) })
		},
	}
	c.readFlags(cmd, "table", "json", "yaml", "toml")
	c.namespaceFlag(cmd)
	c.limitFlag(cmd)
	return cmd
}

func ruleRow(t *table, r *registry.Rule) {
	priority, action := "", "reject"
	if r.Body.Priority != 0 {
		priority = strconv.Itoa(r.Body.Priority)
	}
	if r.Body.Action != "" {
		action = r.Body.Action
	}
	if r.Body.Enabled != nil && !*r.Body.Enabled {
		action += " (off)"
	}
	t.row(r.Name, priority, strings.Join(r.Body.Key, ", "), showLimits(r.Body.Limits), action,
		strconv.FormatInt(r.Version, 10), when(r.UpdatedAt), r.UpdatedBy)
}

// writeTOML writes rules as a file of a namespace, which is told by whoever applies it.
func writeTOML(w io.Writer, rules ...registry.Rule) error {
	var doc ruledoc.Document
	for _, r := range rules {
		r.Body.Namespace = ""
		doc.Rules = append(doc.Rules, r.Body)
	}
	return doc.WriteTOML(w)
}

func newRulesGet() *cobra.Command {
	var c control
	cmd := &cobra.Command{
		Use:     "get NAME",
		Short:   "Show a rule as it is written in files",
		Example: "  sluice rules get search-free\n  sluice rules get search-free --output json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, err := c.in()
			if err != nil {
				return err
			}
			answer, _, err := c.answerFor(cmd.Context(), question{method: http.MethodGet, path: path("namespaces", namespace, "rules", args[0])})
			if err != nil {
				return err
			}
			if c.output.value != "toml" {
				return c.output.printJSON(cmd.OutOrStdout(), answer)
			}
			var r registry.Rule
			if err := json.Unmarshal(answer, &r); err != nil {
				return fmt.Errorf("the node's answer is no rule: %w", err)
			}
			return writeTOML(cmd.OutOrStdout(), r)
		},
	}
	c.readFlags(cmd, "toml", "json", "yaml")
	c.namespaceFlag(cmd)
	return cmd
}

func newRulesDelete() *cobra.Command {
	var c control
	cmd := &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a rule",
		Example: "  sluice rules delete search-free --reason \"the beta is over\"",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, err := c.in()
			if err != nil {
				return err
			}
			answer, err := c.remove(cmd.Context(), path("namespaces", namespace, "rules", args[0]))
			if err != nil {
				return err
			}
			return c.tell(cmd, answer, "deleted rule "+args[0])
		},
	}
	c.writeFlags(cmd)
	c.namespaceFlag(cmd)
	return cmd
}

func newRulesHistory() *cobra.Command {
	var c control
	cmd := &cobra.Command{
		Use:   "history [NAME]",
		Short: "Show who changed which rule, when and why",
		Long: `history shows the changes of a namespace's rules, the newest first. Its revisions are those that "rules rollback" takes; with
--output json the rules before and after each change are shown as well.`,
		Example: "  sluice rules history\n  sluice rules history search-free --output json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, err := c.in()
			if err != nil {
				return err
			}
			query := url.Values{"namespace": {namespace}, "kind": {string(registry.KindRule)}}
			if len(args) > 0 {
				query.Set("name", args[0])
			}
			t := newTable("REVISION", "AT", "BY", "CHANGE", "RULE", "REASON")
			return printList(cmd, &c, path("history"), query, t, func(h *registry.Change) {
				t.row(strconv.FormatInt(int64(h.Revision), 10), when(h.At), h.Actor, changeOf(h), h.Name, h.Reason)
			})
		},
	}
	c.readFlags(cmd)
	c.namespaceFlag(cmd)
	cmd.Flags().IntVar(&c.limit, "limit", 50, "list no more than this many; 0: all")
	return cmd
}

func changeOf(h *registry.Change) string {
	absent := func(body json.RawMessage) bool { return len(body) == 0 || string(body) == "null" }
	switch {
	case absent(h.Before):
		return "create"
	case absent(h.After):
		return "delete"
	}
	return "update"
}
