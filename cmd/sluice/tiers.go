package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/sluicehq/sluice/internal/registry"
)

func newTiers() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tiers",
		Short: "Show and change the plans that subjects are on",
		Example: `  sluice tiers list
  sluice tiers get pro > pro.yaml
  sluice tiers set -f pro.yaml --reason "new prices"`,
	}
	cmd.AddCommand(newTiersList(), newTiersGet(), newTiersSet(), newTiersDelete())
	return cmd
}

func newTiersList() *cobra.Command {
	var c control
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the tiers and their limits",
		Example: "  sluice tiers list\n  sluice tiers list --output json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t := newTable("NAME", "TITLE", "PRICE", "DEFAULT", "LIMITS")
			return printList(cmd, &c, path("tiers"), nil, t, func(e *registry.Entry[registry.Tier]) {
				byDefault := ""
				if e.Body.Default {
					byDefault = "yes"
				}
				t.row(e.Name, e.Body.DisplayName, e.Body.Price, byDefault, showGroups(e.Body.Groups))
			})
		},
	}
	c.readFlags(cmd)
	c.limitFlag(cmd)
	return cmd
}

func showGroups(groups []registry.RouteGroup) string {
	var texts []string
	for _, g := range groups {
		limits := showLimits(g.Limits)
		if g.Unlimited {
			limits = "unlimited"
		}
		texts = append(texts, g.Name+": "+limits)
	}
	return strings.Join(texts, "; ")
}

func newTiersGet() *cobra.Command {
	var c control
	cmd := &cobra.Command{
		Use:     "get NAME",
		Short:   "Show a tier as tiers set takes it",
		Example: "  sluice tiers get pro > pro.yaml\n  sluice tiers get pro --output json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, _, err := c.answerFor(cmd.Context(), question{method: http.MethodGet, path: path("tiers", args[0])})
			if err != nil {
				return err
			}
			var e struct {
				Body json.RawMessage `json:"body"`
			}
			if err := json.Unmarshal(answer, &e); err != nil {
				return fmt.Errorf("the node's answer is no tier: %w", err)
			}
			return c.output.printJSON(cmd.OutOrStdout(), e.Body)
		},
	}
	c.readFlags(cmd, "yaml", "json")
	return cmd
}

func newTiersSet() *cobra.Command {
	var c control
	var file string
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Make a tier, or replace what it says",
		Long: `set reads a tier from a file of YAML or JSON, and makes it, or replaces the one with its name:

  name: pro
  display_name: Pro
  price: 29 EUR a month
  groups:
    - name: search
      routes: [/api/search]
      limits: [{limit: 1000, window: 1h}]
    - name: downloads
      routes: [/files/*]
      unlimited: true`,
		Example: "  sluice tiers set -f pro.yaml --reason \"new prices\"\n  sluice tiers set -f pro.yaml --dry-run",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			tier, err := readTier(file)
			if err != nil {
				return err
			}
			answer, err := c.put(cmd.Context(), path("tiers", tier.Name), tier)
			if err != nil {
				return err
			}
			return c.tell(cmd, answer, "set tier "+tier.Name)
		},
	}
	c.writeFlags(cmd)
	cmd.Flags().StringVarP(&file, "file", "f", "", "a file with the tier, in YAML or JSON")
	return cmd
}

// readTier reads a tier strictly. YAML goes through JSON, whose names a tier has; JSON is YAML, too.
func readTier(file string) (registry.Tier, error) {
	var tier registry.Tier
	if file == "" {
		return tier, usageError{fmt.Errorf("name the tier's file by --file")}
	}
	text, err := readBounded(file)
	if err != nil {
		return tier, err
	}
	var value map[string]any
	if err := yaml.Unmarshal(text, &value); err != nil {
		return tier, fmt.Errorf("%s: %w", file, err)
	}
	asJSON, err := json.Marshal(value)
	if err != nil {
		return tier, fmt.Errorf("%s: %w", file, err)
	}
	d := json.NewDecoder(strings.NewReader(string(asJSON)))
	d.DisallowUnknownFields()
	if err := d.Decode(&tier); err != nil {
		return tier, fmt.Errorf("%s: %s: see sluice tiers set --help", file, strings.TrimPrefix(err.Error(), "json: "))
	}
	if tier.Name == "" {
		return tier, fmt.Errorf("%s: the tier has no name", file)
	}
	return tier, nil
}

func newTiersDelete() *cobra.Command {
	var c control
	cmd := &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a tier",
		Example: "  sluice tiers delete legacy --reason \"nobody is on it\"",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := c.remove(cmd.Context(), path("tiers", args[0]))
			if err != nil {
				return err
			}
			return c.tell(cmd, answer, "deleted tier "+args[0])
		},
	}
	c.writeFlags(cmd)
	return cmd
}
