package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/registry"
)

func newTokens() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tokens",
		Short: "Make and revoke tokens for operators and their programs",
		Example: `  sluice tokens create deploy --grant payments:admin --expires 90d
  sluice tokens list
  sluice tokens revoke 3kTMd8Zq`,
	}
	cmd.AddCommand(newTokensCreate(), newTokensList(), newRevokeOf("tokens", "token", "Revoke a token, for good and at once"))
	return cmd
}

func newTokensCreate() *cobra.Command {
	var c control
	var grants []string
	var expires string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a token, and show it once",
		Long: `create makes a token for the admin listener and prints it: it is shown this once. A grant is a namespace and a role in it: viewer
reads; operator also resets, blocks and overrides; admin also changes rules, tiers, keys and tokens. The namespace * is all of them. The
name stands in the history beside every change that is made with the token.`,
		Example: `  sluice tokens create deploy --grant payments:admin --grant default:viewer --expires 90d
  sluice tokens create support --grant '*:operator' > support.token`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			token := struct {
				Name      string           `json:"name"`
				Grants    []registry.Grant `json:"grants"`
				ExpiresAt time.Time        `json:"expires_at,omitzero"`
			}{Name: args[0]}
			var err error
			if token.Grants, err = parseGrants(grants); err != nil {
				return err
			}
			if token.ExpiresAt, err = parseInstant(expires, time.Now()); err != nil {
				return err
			}
			answer, _, err := c.answerFor(cmd.Context(), question{method: http.MethodPost, path: path("tokens"), body: token})
			if err != nil {
				return err
			}
			return c.tellSecret(cmd, answer, "token")
		},
	}
	c.writeFlags(cmd)
	cmd.Flags().StringArrayVar(&grants, "grant", nil, "NAMESPACE:ROLE, with the role viewer, operator or admin; repeatable")
	cmd.Flags().StringVar(&expires, "expires", "", "when it ends: a time, or 30d from now; default: never")
	return cmd
}

// parseGrants reads NAMESPACE:ROLE. Namespaces may have colons, roles have none.
func parseGrants(texts []string) ([]registry.Grant, error) {
	if len(texts) == 0 {
		return nil, usageError{errors.New("a token without --grant may nothing: say for instance --grant default:viewer")}
	}
	var grants []registry.Grant
	for _, text := range texts {
		at := strings.LastIndexByte(text, ':')
		if at < 1 {
			return nil, usageError{fmt.Errorf("--grant %q: want NAMESPACE:ROLE, such as default:viewer", text)}
		}
		role := registry.Role(text[at+1:])
		if role != registry.Viewer && role != registry.Operator && role != registry.Admin {
			return nil, usageError{fmt.Errorf("--grant %q: the role is viewer, operator or admin", text)}
		}
		grants = append(grants, registry.Grant{Namespace: text[:at], Role: role})
	}
	return grants, nil
}

func newTokensList() *cobra.Command {
	var c control
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List tokens, without their secrets",
		Example: "  sluice tokens list\n  sluice tokens list --output yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t := newTable("ID", "NAME", "GRANTS", "STATE", "EXPIRES", "MADE", "BY")
			return printList(cmd, &c, path("tokens"), nil, t, func(e *registry.Entry[registry.Token]) {
				k := &e.Body
				var grants []string
				for _, g := range k.Grants {
					grants = append(grants, g.Namespace+":"+string(g.Role))
				}
				state := stateOf(&registry.Key{RevokedAt: k.RevokedAt, ExpiresAt: k.ExpiresAt}, time.Now())
				t.row(k.ID, k.Name, strings.Join(grants, ", "), state, when(k.ExpiresAt), when(k.CreatedAt), k.CreatedBy)
			})
		},
	}
	c.readFlags(cmd)
	c.limitFlag(cmd)
	return cmd
}
