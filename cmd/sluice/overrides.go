package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/registry"
)

func newOverrides() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "overrides",
		Short: "Give single subjects other limits in single rules",
		Example: `  sluice overrides list --subject user=u_42
  sluice overrides set user=u_42 --rule search --limit "500 per 1h" --valid-until 7d --reason "launch week"
  sluice overrides delete 17`,
	}
	cmd.AddCommand(newOverridesList(), newOverridesSet(), newOverridesDelete())
	return cmd
}

func newOverridesList() *cobra.Command {
	var c control
	var subject, rule string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List overrides, of a subject or of a rule",
		Example: "  sluice overrides list\n  sluice overrides list --subject user=u_42 --output json\n  sluice overrides list --rule search",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := url.Values{"rule": {rule}, "namespace": {c.space}}
			if subject != "" {
				who, err := parseWho(subject, subjectDimensions)
				if err != nil {
					return err
				}
				query.Set("dimension", who.Dimension)
				query.Set("id", who.ID)
			}
			t := newTable("ID", "NAMESPACE", "SUBJECT", "RULE", "LIMITS", "FROM", "UNTIL", "REASON", "BY")
			return printList(cmd, &c, path("overrides"), query, t, func(e *registry.Entry[registry.Override]) {
				o := &e.Body
				t.row(o.ID, o.Namespace, showWho(o.Who), o.Rule, showLimits(o.Limits), when(o.ValidFrom), when(o.ValidUntil), o.Reason, o.Author)
			})
		},
	}
	c.readFlags(cmd)
	cmd.Flags().StringVarP(&c.space, "namespace", "n", "", "only of this namespace")
	cmd.Flags().StringVar(&subject, "subject", "", "only of this subject, such as user=u_42")
	cmd.Flags().StringVar(&rule, "rule", "", "only of this rule")
	c.limitFlag(cmd)
	return cmd
}

// overrideFlags are those of sluice overrides set.
type overrideFlags struct {
	id, rule    string
	limits      []string
	from, until string
}

func newOverridesSet() *cobra.Command {
	var c control
	var flags overrideFlags
	cmd := &cobra.Command{
		Use:   "set SUBJECT",
		Short: "Give a subject other limits in a rule",
		Long: `set replaces the limits of one rule, as a whole, for one subject: user=ID, tenant=ID or api_key=ID. Limits are written as
"500 per 1h" (sliding window), "sliding_log 5 per 1m", "fixed_window 100 per 1d" or "token_bucket 10 per 1s burst 20". A subject may have several overrides of a rule, for other times; --id replaces one.`,
		Example: `  sluice overrides set user=u_42 --rule search --limit "500 per 1h" --reason "launch week" --valid-until 7d
  sluice overrides set tenant=acme --rule api --limit "token_bucket 100 per 1s burst 200" --limit "1000000 per 1d" --reason contract`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeWho(subjectDimensions),
		RunE: func(cmd *cobra.Command, args []string) error {
			override, err := flags.read(&c, args[0])
			if err != nil {
				return err
			}
			answer, err := flags.send(cmd.Context(), &c, override)
			if err != nil {
				return err
			}
			return c.tell(cmd, answer, "set: "+showWho(override.Who)+" has "+showLimits(override.Limits)+" in rule "+override.Rule)
		},
	}
	c.writeFlags(cmd)
	c.namespaceFlag(cmd)
	cmd.Flags().StringVar(&flags.id, "id", "", "replace the override with this id, instead of adding one")
	cmd.Flags().StringVar(&flags.rule, "rule", "", "the rule whose limits are replaced")
	cmd.Flags().StringArrayVar(&flags.limits, "limit", nil, `a limit, such as "500 per 1h"; repeatable`)
	cmd.Flags().StringVar(&flags.from, "valid-from", "", "when it begins: a time, or 24h or 30d from now; default: now")
	cmd.Flags().StringVar(&flags.until, "valid-until", "", "when it ends; default: when it is deleted")
	return cmd
}

func (f *overrideFlags) read(c *control, subject string) (o registry.Override, err error) {
	if o.Who, err = parseWho(subject, subjectDimensions); err != nil {
		return o, err
	}
	if f.rule == "" || len(f.limits) == 0 || c.reason == "" {
		return o, usageError{errors.New("an override takes --rule, --limit and --reason")}
	}
	o.Rule, o.Reason = f.rule, c.reason
	if o.Namespace, err = c.in(); err != nil {
		return o, err
	}
	for _, text := range f.limits {
		limit, err := parseLimit(text)
		if err != nil {
			return o, err
		}
		o.Limits = append(o.Limits, limit)
	}
	now := time.Now()
	if o.ValidFrom, err = parseInstant(f.from, now); err != nil {
		return o, err
	}
	o.ValidUntil, err = parseInstant(f.until, now)
	return o, err
}

// send adds an override, or replaces the one that is named.
func (f *overrideFlags) send(ctx context.Context, c *control, o registry.Override) ([]byte, error) {
	if f.id != "" {
		return c.put(ctx, path("overrides", f.id), o)
	}
	answer, _, err := c.answerFor(ctx, question{method: http.MethodPost, path: path("overrides"), body: o})
	return answer, err
}

func newOverridesDelete() *cobra.Command {
	var c control
	cmd := &cobra.Command{
		Use:     "delete ID",
		Short:   "Delete an override by its id",
		Example: "  sluice overrides delete 17 --reason \"launch week is over\"",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := c.remove(cmd.Context(), path("overrides", args[0]))
			if err != nil {
				return err
			}
			return c.tell(cmd, answer, "deleted override "+args[0])
		},
	}
	c.writeFlags(cmd)
	return cmd
}
