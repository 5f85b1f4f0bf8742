package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/registry"
)

func newNodes() *cobra.Command {
	var c control
	cmd := &cobra.Command{
		Use:     "nodes",
		Short:   "List the nodes of a cluster and the revision each serves",
		Example: "  sluice nodes\n  sluice nodes --output json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t := newTable("NODE", "REVISION", "VERSION", "SEEN")
			return printList(cmd, &c, path("nodes"), nil, t, func(n *registry.Node) {
				t.row(n.Name, strconv.FormatInt(int64(n.Revision), 10), n.Version, when(n.SeenAt))
			})
		},
	}
	c.readFlags(cmd)
	c.limitFlag(cmd)
	return cmd
}
