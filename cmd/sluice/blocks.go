package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/registry"
)

func newBlocks() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "blocks",
		Short: "Refuse subjects and networks everywhere",
		Example: `  sluice blocks list
  sluice blocks set user=mallory --reason abuse --until 24h
  sluice blocks delete user=mallory`,
	}
	cmd.AddCommand(newBlocksList(), newBlocksSet(), newBlocksDelete())
	return cmd
}

func newBlocksList() *cobra.Command {
	var c control
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List who is blocked, why and until when",
		Example: "  sluice blocks list\n  sluice blocks list --output json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t := newTable("SUBJECT", "UNTIL", "REASON", "BY")
			return printList(cmd, &c, path("blocks"), nil, t, func(e *registry.Entry[registry.Block]) {
				t.row(showWho(e.Body.Who), when(e.Body.Until), e.Body.Reason, e.Body.Author)
			})
		},
	}
	c.readFlags(cmd)
	c.limitFlag(cmd)
	return cmd
}

func newBlocksSet() *cobra.Command {
	var c control
	var until string
	cmd := &cobra.Command{
		Use:   "set SUBJECT",
		Short: "Block a subject or a network",
		Long: `set refuses every request of a subject, whatever the rules say: user=ID, tenant=ID, api_key=ID, or ip=ADDRESS, which may be a
network. The reason is required; those who are refused do not see it.`,
		Example: `  sluice blocks set user=mallory --reason abuse
  sluice blocks set ip=203.0.113.0/24 --reason scraping --until 24h`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeWho(networkDimensions),
		RunE: func(cmd *cobra.Command, args []string) error {
			who, err := parseWho(args[0], networkDimensions)
			if err != nil {
				return err
			}
			if c.reason == "" {
				return usageError{errors.New("say why by --reason: whoever finds the block later will ask")}
			}
			end, err := parseInstant(until, time.Now())
			if err != nil {
				return err
			}
			block := registry.Block{Who: who, Reason: c.reason, Until: end}
			answer, err := c.put(cmd.Context(), path("blocks", who.Dimension, who.ID), block)
			if err != nil {
				return err
			}
			return c.tell(cmd, answer, "blocked "+showWho(who))
		},
	}
	c.writeFlags(cmd)
	cmd.Flags().StringVar(&until, "until", "", "when it ends: a time, or 24h or 30d from now; default: when it is deleted")
	return cmd
}

func newBlocksDelete() *cobra.Command {
	return newDeleteOf("blocks", "Lift a block", "unblocked")
}

// newDeleteOf returns a command that deletes what is on record about a subject or a network.
func newDeleteOf(noun, short, done string) *cobra.Command {
	var c control
	cmd := &cobra.Command{
		Use:               "delete SUBJECT",
		Short:             short,
		Example:           fmt.Sprintf("  sluice %s delete user=u_42 --reason \"asked by support\"\n  sluice %s delete ip=203.0.113.0/24", noun, noun),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeWho(networkDimensions),
		RunE: func(cmd *cobra.Command, args []string) error {
			who, err := parseWho(args[0], networkDimensions)
			if err != nil {
				return err
			}
			answer, err := c.remove(cmd.Context(), path(noun, who.Dimension, who.ID))
			if err != nil {
				return err
			}
			return c.tell(cmd, answer, done+" "+showWho(who))
		},
	}
	c.writeFlags(cmd)
	return cmd
}
