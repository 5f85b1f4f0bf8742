package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

func newKeys() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make, rotate and revoke API keys",
		Example: `  sluice keys create --owner u_42 --name "backup job" --expires 90d
  sluice keys list --owner u_42
  sluice keys rotate 3kTMd8Zq --overlap 24h
  sluice keys revoke 3kTMd8Zq --reason leaked`,
	}
	cmd.AddCommand(newKeysCreate(), newKeysList(), newKeysRotate(), newKeysRevoke())
	return cmd
}

func newKeysCreate() *cobra.Command {
	var c control
	var key struct {
		Name      string    `json:"name,omitempty"`
		Owner     string    `json:"owner"`
		Tenant    string    `json:"tenant,omitempty"`
		Tier      string    `json:"tier,omitempty"`
		ExpiresAt time.Time `json:"expires_at,omitzero"`
	}
	var expires string
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make an API key, and show it once",
		Long: `create makes an API key and prints it. It is shown this once: the cluster keeps only a hash. The key alone goes to standard output, so
that it can be written to a file or a secret store; everything else goes to standard error.`,
		Example: `  sluice keys create --owner u_42 --name "backup job"
  sluice keys create --owner u_42 --tenant acme --tier pro --expires 90d > key.txt`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if key.Owner == "" {
				return usageError{fmt.Errorf("say by --owner for whom the key acts")}
			}
			var err error
			if key.ExpiresAt, err = parseInstant(expires, time.Now()); err != nil {
				return err
			}
			answer, _, err := c.answerFor(cmd.Context(), question{method: http.MethodPost, path: path("keys"), body: key})
			if err != nil {
				return err
			}
			return c.tellSecret(cmd, answer, "API key")
		},
	}
	c.writeFlags(cmd)
	cmd.Flags().StringVar(&key.Owner, "owner", "", "the user for whom it acts")
	cmd.Flags().StringVar(&key.Name, "name", "", "what it is for, for people")
	cmd.Flags().StringVar(&key.Tenant, "tenant", "", "the tenant for whom it acts")
	cmd.Flags().StringVar(&key.Tier, "tier", "", "the tier it is on; default: its owner's")
	cmd.Flags().StringVar(&expires, "expires", "", "when it ends: a time, or 30d from now; default: never")
	return cmd
}

// tellSecret prints a secret that is shown once.
func (c *control) tellSecret(cmd *cobra.Command, answer []byte, noun string) error {
	if c.output.value != "table" || c.dryRun {
		return c.tell(cmd, answer, "")
	}
	var made struct {
		Name   string `json:"name"`
		Secret string `json:"secret"`
	}
	if err := json.Unmarshal(answer, &made); err != nil {
		return fmt.Errorf("the node's answer is not understood: %w", err)
	}
	if made.Secret == "" {
		return fmt.Errorf("the node's answer holds no secret: revoke %s %q and make another", noun, made.Name)
	}
	_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s %s; this is the only time it is shown:\n", noun, printable(made.Name))
	_, err := fmt.Fprintln(cmd.OutOrStdout(), printable(made.Secret))
	return err
}

func newKeysList() *cobra.Command {
	var c control
	var owner, tenant string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List API keys, without their secrets",
		Example: "  sluice keys list --owner u_42\n  sluice keys list --tenant acme --output json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t := newTable("ID", "NAME", "OWNER", "TENANT", "TIER", "STATE", "EXPIRES", "USES", "LAST USED")
			return printList(cmd, &c, path("keys"), url.Values{"owner": {owner}, "tenant": {tenant}}, t, func(e *registry.Entry[registry.Key]) {
				k := &e.Body
				t.row(k.ID, k.Name, k.Owner, k.Tenant, k.Tier, stateOf(k, time.Now()), when(k.ExpiresAt), strconv.FormatInt(k.Uses, 10), when(k.LastUsedAt))
			})
		},
	}
	c.readFlags(cmd)
	cmd.Flags().StringVar(&owner, "owner", "", "only of this user")
	cmd.Flags().StringVar(&tenant, "tenant", "", "only of this tenant")
	c.limitFlag(cmd)
	return cmd
}

func stateOf(k *registry.Key, now time.Time) string {
	switch {
	case !k.RevokedAt.IsZero():
		return "revoked"
	case !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt):
		return "expired"
	case now.Before(k.OldUntil):
		return "rotating until " + when(k.OldUntil)
	}
	return "valid"
}

func newKeysRotate() *cobra.Command {
	var c control
	var overlap string
	cmd := &cobra.Command{
		Use:   "rotate ID",
		Short: "Give an API key another secret; the old one is valid for a while",
		Example: `  sluice keys rotate 3kTMd8Zq
  sluice keys rotate 3kTMd8Zq --overlap 0s --reason leaked`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var length ruledoc.Duration
			if err := length.UnmarshalText([]byte(overlap)); err != nil {
				return usageError{fmt.Errorf("--overlap: %w", err)}
			}
			answer, _, err := c.answerFor(cmd.Context(), question{
				method: http.MethodPost, path: path("keys", args[0], "rotate"), body: map[string]string{"overlap": length.String()},
			})
			if err != nil {
				return err
			}
			return c.tellSecret(cmd, answer, "API key")
		},
	}
	c.writeFlags(cmd)
	cmd.Flags().StringVar(&overlap, "overlap", "24h", "how long the old secret is valid; 0s ends it at once")
	return cmd
}

func newKeysRevoke() *cobra.Command {
	return newRevokeOf("keys", "API key", "Revoke an API key, for good and at once")
}

// newRevokeOf returns a command that ends a key or a token.
func newRevokeOf(noun, title, short string) *cobra.Command {
	var c control
	cmd := &cobra.Command{
		Use:     "revoke ID",
		Short:   short,
		Example: "  sluice " + noun + " revoke 3kTMd8Zq --reason leaked",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, _, err := c.answerFor(cmd.Context(), question{method: http.MethodDelete, path: path(noun, args[0])})
			if err != nil {
				return err
			}
			return c.tell(cmd, answer, "revoked "+title+" "+args[0])
		},
	}
	c.writeFlags(cmd)
	return cmd
}
