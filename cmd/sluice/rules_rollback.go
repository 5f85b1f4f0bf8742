package main

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"
)

func newRulesRollback() *cobra.Command {
	var c control
	var yes bool
	cmd := &cobra.Command{
		Use:   "rollback REVISION",
		Short: "Make the rules of a namespace what they were at a revision",
		Long: `rollback brings back the rules of a former revision, as "rules history" numbers them. It is a change like any other: with a revision
of its own, and what it undoes stays in the history. It shows which rules would change, and asks. When somebody else changes, adds or
deletes a rule of the namespace meanwhile, nothing is changed.`,
		Example: `  sluice rules rollback 41 --reason "searches were refused"
  sluice rules rollback 41 --namespace payments --yes`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			revision, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || revision < 0 {
				return usageError{fmt.Errorf("%q is no revision: see sluice rules history", args[0])}
			}
			return c.rollback(cmd, revision, yes)
		},
	}
	c.writeFlags(cmd)
	c.namespaceFlag(cmd)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func (c *control) rollback(cmd *cobra.Command, revision int64, yes bool) error {
	namespace, err := c.in()
	if err != nil {
		return err
	}
	_, versions, err := c.rulesNow(cmd.Context(), namespace)
	if err != nil {
		return err
	}
	q := question{
		method: http.MethodPost, path: path("namespaces", namespace, "rollback"), body: map[string]any{"revision": revision, "if_versions": versions},
	}
	wantsOnlyToKnow := c.dryRun
	c.dryRun = true
	trial, _, err := c.answerFor(cmd.Context(), q)
	if err != nil {
		return overtaken(err)
	}
	_, would, err := readApplied(trial)
	if err != nil {
		return err
	}
	c.dryRun = wantsOnlyToKnow
	if c.output.value == "table" {
		would.printNames(cmd)
	}
	if changed := len(would.Created) + len(would.Updated) + len(would.Deleted); c.dryRun || changed == 0 {
		if c.output.value != "table" {
			return c.output.printJSON(cmd.OutOrStdout(), trial)
		}
		return nil
	}
	if !yes {
		if err := confirm(cmd, fmt.Sprintf("Go back to revision %d at %s?", revision, c.url)); err != nil {
			return err
		}
	}
	answer, _, err := c.answerFor(cmd.Context(), q)
	if err != nil {
		return overtaken(err)
	}
	_, done, err := readApplied(answer)
	if err != nil {
		return err
	}
	return c.tell(cmd, answer, done.summary(namespace))
}

// printNames lists the rules that would change.
func (a *applied) printNames(cmd *cobra.Command) {
	w := cmd.OutOrStdout()
	for _, part := range []struct {
		change string
		names  []string
	}{{"create", a.Created}, {"update", a.Updated}, {"delete", a.Deleted}} {
		for _, name := range part.names {
			_, _ = fmt.Fprintf(w, "%s rule %s\n", part.change, printable(name))
		}
	}
	if len(a.Created)+len(a.Updated)+len(a.Deleted) == 0 {
		_, _ = fmt.Fprintln(w, "nothing to change")
	}
}
