package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

// rulesApply is what apply and diff do: compare files with a cluster.
type rulesApply struct {
	control
	files    []string
	prune    bool
	yes      bool
	exitCode bool
}

// plan is what becomes of one namespace.
type plan struct {
	namespace string
	wanted    []ruledoc.Rule
	changes   []ruleChange
	versions  map[string]int64 // of the rules that it was compared with
}

func newRulesApply() *cobra.Command {
	var a rulesApply
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Make the rules of a cluster those in files",
		Long: `apply compares files with the cluster, shows what would change, asks, and changes it: all rules of a namespace in one step, so that
every decision is made by the old ones or by the new ones. Rules that the files do not name stay, unless --prune is given. Rules that name
no namespace are in that of --namespace.

Nodes check the rules first, and tell how many of the requests they decided lately would be decided otherwise. When somebody else changed,
added or deleted one of these rules after they were compared (with --prune: any of the namespace), nothing is changed.`,
		Example: `  sluice rules apply -f rules.d/
  sluice rules apply -f rules.d/ --prune --yes --reason "release 12"
  sluice rules apply --file search.toml --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.apply(cmd) },
	}
	a.writeFlags(cmd)
	a.fileFlags(cmd)
	cmd.Flags().BoolVarP(&a.yes, "yes", "y", false, "do not ask")
	return cmd
}

func newRulesDiff() *cobra.Command {
	var a rulesApply
	cmd := &cobra.Command{
		Use:     "diff",
		Short:   "Show what apply would change",
		Example: "  sluice rules diff -f rules.d/\n  sluice rules diff -f rules.d/ --prune --exit-code",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			plans, err := a.plan(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if err := a.show(cmd.OutOrStdout(), plans); err != nil || !a.exitCode || changesOf(plans) == 0 {
				return err
			}
			return errDiffers
		},
	}
	a.readFlags(cmd)
	a.fileFlags(cmd)
	cmd.Flags().BoolVar(&a.exitCode, "exit-code", false, "exit with 1 when there is a difference")
	return cmd
}

// errDiffers ends diff --exit-code.
var errDiffers = errors.New("the rules of the cluster are not those in the files")

func (a *rulesApply) fileFlags(cmd *cobra.Command) {
	a.namespaceFlag(cmd)
	cmd.Flags().StringArrayVarP(&a.files, "file", "f", nil, "a rules file, or a folder of them; repeatable")
	cmd.Flags().BoolVar(&a.prune, "prune", false, "delete rules of these namespaces that the files do not name")
}

func (a *rulesApply) plan(ctx context.Context, notes io.Writer) ([]plan, error) {
	parts, err := readRules(notes, a.files)
	if err != nil {
		return nil, err
	}
	otherwise, err := a.in()
	if err != nil {
		return nil, err
	}
	sorted, err := byNamespace(notes, parts, otherwise)
	if err != nil {
		return nil, err
	}
	if nouns := leftOut(parts); nouns != "" {
		_, _ = fmt.Fprintf(notes, "note: the files have %s, too; only their rules are looked at\n", nouns)
	}
	var plans []plan
	for namespace, wanted := range sorted {
		entries, versions, err := a.rulesNow(ctx, namespace)
		if err != nil {
			return nil, err
		}
		var now []ruledoc.Rule
		for _, e := range entries {
			now = append(now, e.Body)
		}
		plans = append(plans, plan{namespace, wanted, compareRules(namespace, now, wanted, a.prune), versions})
	}
	slices.SortFunc(plans, func(x, y plan) int { return strings.Compare(x.namespace, y.namespace) })
	return plans, nil
}

// rulesNow lists the rules of a namespace, and the versions by which a node tells that they are others by then. Where there is no such
// namespace there are none: the node says it better when something is to be done.
func (c *control) rulesNow(ctx context.Context, namespace string) ([]registry.Rule, map[string]int64, error) {
	entries, _, err := listed[registry.Rule](ctx, c, path("namespaces", namespace, "rules"), nil)
	if err != nil && !isMissing(err) {
		return nil, nil, err
	}
	versions := make(map[string]int64, len(entries))
	for _, e := range entries {
		versions[e.Name] = e.Version
	}
	return entries, versions, nil
}

func changesOf(plans []plan) int {
	n := 0
	for _, p := range plans {
		n += len(p.changes)
	}
	return n
}

// show prints all changes.
func (a *rulesApply) show(w io.Writer, plans []plan) error {
	changes := []ruleChange{}
	for _, p := range plans {
		changes = append(changes, p.changes...)
	}
	if a.output.value != "table" {
		return a.output.printValue(w, map[string]any{"changes": changes})
	}
	colours := coloured(w)
	for i := range changes {
		changes[i].print(w, colours)
	}
	if len(changes) == 0 {
		_, err := fmt.Fprintln(w, "nothing to change")
		return err
	}
	return nil
}

func (a *rulesApply) apply(cmd *cobra.Command) error {
	plans, err := a.plan(cmd.Context(), cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	plans = slices.DeleteFunc(plans, func(p plan) bool { return len(p.changes) == 0 })
	if a.output.value == "table" || len(plans) == 0 || a.dryRun {
		if err := a.show(cmd.OutOrStdout(), plans); err != nil {
			return err
		}
	}
	if len(plans) == 0 {
		return nil
	}
	if err := a.try(cmd.Context(), cmd.ErrOrStderr(), plans); err != nil || a.dryRun {
		return err
	}
	if !a.yes {
		if err := confirm(cmd, fmt.Sprintf("Make %s at %s?", counted(changesOf(plans), "change"), a.url)); err != nil {
			return err
		}
		if len(plans) > 1 { // while we asked one may have become impossible, and the others would be done before that is found
			if err := a.try(cmd.Context(), io.Discard, plans); err != nil {
				return err
			}
		}
	}
	return a.send(cmd, plans)
}

// applied is what a node answers.
type applied struct {
	registry.Applied
	Verdicts *struct {
		Tried  int               `json:"tried"`
		Differ []json.RawMessage `json:"differ"`
	} `json:"verdicts"`
}

func (a *rulesApply) post(ctx context.Context, p plan) ([]byte, applied, error) {
	answer, _, err := a.answerFor(ctx, question{
		method: http.MethodPost, path: path("namespaces", p.namespace) + "/rules:apply",
		body: map[string]any{"rules": p.wanted, "prune": a.prune, "if_versions": p.versions},
	})
	if err != nil {
		return nil, applied{}, fmt.Errorf("namespace %s: %w", p.namespace, overtaken(err))
	}
	return readApplied(answer)
}

// overtaken says what to do where somebody else was faster.
func overtaken(err error) error {
	var said nodeError
	if errors.As(err, &said) && said.status == http.StatusPreconditionFailed {
		return fmt.Errorf("%w\nnothing was changed in this namespace: run the command again to see what it would change now", err)
	}
	return err
}

func readApplied(answer []byte) ([]byte, applied, error) {
	var done applied
	if err := json.Unmarshal(answer, &done); err != nil {
		return nil, done, fmt.Errorf("the node's answer is not understood: %w", err)
	}
	return answer, done, nil
}

// try lets a node check all plans before anything is done, and tells what it foresees.
func (a *rulesApply) try(ctx context.Context, notes io.Writer, plans []plan) error {
	trial := *a
	trial.dryRun = true
	for _, p := range plans {
		_, would, err := trial.post(ctx, p)
		if err != nil {
			return err
		}
		if would.Verdicts != nil && would.Verdicts.Tried > 0 {
			_, _ = fmt.Fprintf(notes, "of the last %d requests in namespace %s, %d would be decided otherwise\n",
				would.Verdicts.Tried, p.namespace, len(would.Verdicts.Differ))
		}
	}
	return nil
}

func (a *rulesApply) send(cmd *cobra.Command, plans []plan) error {
	var answers []json.RawMessage
	var failed error
	for _, p := range plans {
		answer, done, err := a.post(cmd.Context(), p)
		if err != nil {
			failed = err // what was done before it is told all the same
			break
		}
		answers = append(answers, answer)
		if a.output.value == "table" {
			_, _ = fmt.Fprintln(cmd.OutOrStdout(), done.summary(p.namespace))
		}
	}
	if a.output.value == "table" || len(answers) == 0 {
		return failed
	}
	return errors.Join(failed, a.output.printValue(cmd.OutOrStdout(), map[string]any{"applied": answers}))
}

func (a *applied) summary(namespace string) string {
	return fmt.Sprintf("namespace %s is at revision %d: %d created, %d updated, %d deleted",
		printable(namespace), a.Revision, len(a.Created), len(a.Updated), len(a.Deleted))
}

// errNotConfirmed ends what was asked about and not wanted.
var errNotConfirmed = errors.New("nothing was changed")

// confirm asks on standard error. Where nobody can answer it says what to write.
func confirm(cmd *cobra.Command, asked string) error {
	_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s [y/N] ", asked)
	line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if err != nil && line == "" {
		_, _ = fmt.Fprintln(cmd.ErrOrStderr())
		return usageError{errors.New("nobody answers here: say --yes")}
	}
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return errNotConfirmed
	}
	return nil
}
