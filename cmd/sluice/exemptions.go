package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/registry"
)

func newExemptions() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "exemptions",
		Short: "Let subjects and networks pass every rule",
		Example: `  sluice exemptions list
  sluice exemptions set ip=192.0.2.0/28 --reason "health checks"
  sluice exemptions delete ip=192.0.2.0/28`,
	}
	cmd.AddCommand(newExemptionsList(), newExemptionsSet(), newDeleteOf("exemptions", "Take an exemption back", "no longer exempt:"))
	return cmd
}

func newExemptionsList() *cobra.Command {
	var c control
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List who passes every rule, and why",
		Example: "  sluice exemptions list\n  sluice exemptions list --output yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t := newTable("SUBJECT", "REASON", "BY")
			return printList(cmd, &c, path("exemptions"), nil, t, func(e *registry.Entry[registry.Exemption]) {
				t.row(showWho(e.Body.Who), e.Body.Reason, e.Body.Author)
			})
		},
	}
	c.readFlags(cmd)
	c.limitFlag(cmd)
	return cmd
}

func newExemptionsSet() *cobra.Command {
	var c control
	cmd := &cobra.Command{
		Use:               "set SUBJECT",
		Short:             "Let a subject or a network pass every rule",
		Long:              "set lets every request of a subject pass: user=ID, tenant=ID, api_key=ID, or ip=ADDRESS, which may be a network. A block is stronger.",
		Example:           "  sluice exemptions set user=monitoring --reason \"our own probes\"",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeWho(networkDimensions),
		RunE: func(cmd *cobra.Command, args []string) error {
			who, err := parseWho(args[0], networkDimensions)
			if err != nil {
				return err
			}
			if c.reason == "" {
				return usageError{errors.New("say why by --reason: whoever finds the exemption later will ask")}
			}
			answer, err := c.put(cmd.Context(), path("exemptions", who.Dimension, who.ID), registry.Exemption{Who: who, Reason: c.reason})
			if err != nil {
				return err
			}
			return c.tell(cmd, answer, "exempt: "+showWho(who))
		},
	}
	c.writeFlags(cmd)
	return cmd
}
