package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/docs/schema"
	"github.com/sluicehq/sluice/internal/config"
)

func newConfig(flags *config.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check and show the configuration",
		Long: `config shows what a node would be told: the configuration file, then the SLUICE_ variables of the environment, then
the flags. It reads them as "sluice serve" does, and connects to nothing.`,
		Example: `  sluice config check
  sluice config print --effective
  sluice config schema > sluice.schema.json`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(newConfigCheck(flags), newConfigPrint(flags), newConfigSchema())
	return cmd
}

func newConfigCheck(flags *config.Flags) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check the configuration and list every fault",
		Long: `check reads the configuration and lists every fault at once, each with its place and a hint. It exits with 0 when a node
would start with it, and with 1 otherwise.`,
		Example: `  sluice config check
  sluice config check --config /etc/sluice/sluice.toml
  SLUICE_LOG__LEVEL=debug sluice config check`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			loaded, err := config.Load(flags.Options())
			if err != nil {
				return err
			}
			for _, warning := range loaded.Warnings {
				fmt.Fprintln(cmd.ErrOrStderr(), "warning:", warning)
			}
			name := loaded.Path
			if name == "" {
				name = "defaults, without a file"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "ok: %s\n", name)
			return err
		},
	}
}

func newConfigPrint(flags *config.Flags) *cobra.Command {
	var opts config.PrintOptions
	var output form
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print the configuration with the origin of each value",
		Long: `print writes what was set, each value with the place it was set at. With --effective it writes the defaults as well: all
that a node goes by. Secrets, and passwords in URLs, are hidden.`,
		Example: `  sluice config print
  sluice config print --effective
  sluice config print --effective --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts.JSON = output.json()
			loaded, err := config.Load(flags.Options())
			if err != nil {
				return err
			}
			return loaded.Print(cmd.OutOrStdout(), opts)
		},
	}
	cmd.Flags().BoolVar(&opts.Effective, "effective", false, "print the defaults as well")
	output.addTo(cmd, "toml", "json")
	return cmd
}

func newConfigSchema() *cobra.Command {
	var rules bool
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the configuration file or of rules files",
		Long: `schema prints a JSON Schema, by which editors complete names and mark mistakes while you type. Name it at the top of a
file: "#:schema ./sluice.schema.json" in TOML, "# yaml-language-server: $schema=./rules.schema.json" in YAML.`,
		Example: `  sluice config schema > sluice.schema.json
  sluice config schema --rules > rules.schema.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text := schema.Config
			if rules {
				text = schema.Rules
			}
			_, err := cmd.OutOrStdout().Write(text)
			return err
		},
	}
	cmd.Flags().BoolVar(&rules, "rules", false, "print the one of rules files")
	return cmd
}
