package main

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/config"
)

// newRoot returns the command with all its subcommands.
func newRoot() *cobra.Command {
	flags := &config.Flags{}
	root := &cobra.Command{
		Use:   "sluice",
		Short: "Limit the rates of an API, exactly and on every node",
		Long: `sluice decides whether a request may pass now: by rules, counted in Redis, the same on every node.

Start with "sluice dev", which needs nothing else; "sluice serve" runs a node.`,
		Example: `  sluice dev
  sluice serve --config sluice.toml
  sluice check user=u_42 route=/api/search
  sluice explain user=u_42 route=/api/search`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	configured := []*cobra.Command{newServe(flags), newConfig(flags), newDoctor(flags), newMigrate(flags), newHistory(flags)}
	for _, cmd := range configured {
		flags.AddTo(cmd.PersistentFlags())
	}
	root.AddCommand(configured...)
	root.AddCommand(
		newDev(), newCheck(), newExplain(), newInspect(), newReset(), newRefund(), newStatus(), newTail(), newImport(), newVersion(),
	)
	root.AddCommand(
		newRules(), newTiers(), newSubjects(), newOverrides(), newKeys(), newBlocks(), newExemptions(), newTokens(), newNodes(),
		newNamespaces(), newContext(),
	)
	addCompletion(root)
	tellUsage(root)
	return root
}

// addCompletion adds cobra's commands for shells now instead of when the root runs, and tells how to use them.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	cmd, _, err := root.Find([]string{"completion"})
	if err != nil {
		panic("sluice: " + err.Error()) // cobra has just added it
	}
	cmd.Short = "Write the completion of commands and flags for a shell"
	cmd.Example = "  source <(sluice completion bash)\n  sluice completion zsh > \"${fpath[1]}/_sluice\"\n  sluice completion fish | source"
	for _, shell := range cmd.Commands() {
		shell.Example = "  sluice completion " + shell.Name()
	}
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  sluice version",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "sluice", version())
			return err
		},
	}
}

// version is that of the module, or the commit it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}

// errNoArguments asks for what a command needs.
var errNoArguments = errors.New("name who asks and for what, such as: user=u_42 route=/api/search")
