package main

import (
	"net/http"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/registry"
)

func newNamespaces() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "namespaces",
		Short:   "List the namespaces of a cluster, and make others",
		Example: "  sluice namespaces list\n  sluice namespaces create payments",
	}
	cmd.AddCommand(newNamespacesList(), newNamespacesCreate())
	return cmd
}

func newNamespacesList() *cobra.Command {
	var c control
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the namespaces that you may see",
		Example: "  sluice namespaces list\n  sluice namespaces list --output json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t := newTable("NAME", "MADE", "BY")
			return printList(cmd, &c, path("namespaces"), nil, t, func(n *registry.Namespace) { t.row(n.Name, when(n.CreatedAt), n.CreatedBy) })
		},
	}
	c.readFlags(cmd)
	c.limitFlag(cmd)
	return cmd
}

func newNamespacesCreate() *cobra.Command {
	var c control
	cmd := &cobra.Command{
		Use:     "create NAME",
		Short:   "Make a namespace, for rules that have nothing to do with the others",
		Example: "  sluice namespaces create payments --reason \"a team of its own\"",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, _, err := c.answerFor(cmd.Context(), question{method: http.MethodPost, path: path("namespaces"), body: map[string]string{"name": args[0]}})
			if err != nil {
				return err
			}
			return c.tell(cmd, answer, "made namespace "+args[0])
		},
	}
	c.writeFlags(cmd)
	return cmd
}
