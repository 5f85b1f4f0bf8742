package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/envoyimport"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

func newImport() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "import",
		Short:   "Turn another limiter's configuration into rules",
		Example: `  sluice import envoy-ratelimit config.yaml`,
	}
	cmd.AddCommand(newImportEnvoy())
	return cmd
}

// importFlags are those of sluice import envoy-ratelimit.
type importFlags struct {
	file, output, algorithm string
	strict                  bool
}

func newImportEnvoy() *cobra.Command {
	var flags importFlags
	cmd := &cobra.Command{
		Use:   "envoy-ratelimit FILE...",
		Short: "Turn a configuration of envoyproxy/ratelimit into rules",
		Long: `envoy-ratelimit reads the YAML files of envoyproxy/ratelimit and writes rules that mean the same: nested descriptors in order and
depth, wildcards, shadow_mode, unlimited, replaces, share_threshold, units up to a year. Each domain becomes a namespace.

What cannot be carried over is named on standard error, with the descriptor it stands at; with --strict the command then
fails. Rules are written to standard output, or to a file in your rules folder.`,
		Example: `  sluice import envoy-ratelimit config/*.yaml -o rules.d/envoy.toml
  sluice import envoy-ratelimit config.yaml --output yaml --strict`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("name the files to import, such as config/ratelimit/config.yaml")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.run(cmd.OutOrStdout(), cmd.ErrOrStderr(), args)
		},
	}
	cmd.Flags().StringVarP(&flags.file, "file", "o", "", "write the rules to this file; default standard output")
	cmd.Flags().StringVar(&flags.output, "output", "toml", "toml or yaml")
	cmd.Flags().StringVar(&flags.algorithm, "algorithm", "fixed_window", "fixed_window, for the same verdicts, or sliding_window, which does not let twice the limit pass around a window's edge")
	cmd.Flags().BoolVar(&flags.strict, "strict", false, "fail when something cannot be carried over")
	return cmd
}

// errNotCarried ends a strict import. What it is about was printed already.
var errNotCarried = errors.New("not everything could be carried over")

func (f *importFlags) run(out, notes io.Writer, names []string) error {
	if f.output != "toml" && f.output != "yaml" {
		return usageError{fmt.Errorf("--output is %q: want toml or yaml", f.output)}
	}
	files := make([]envoyimport.File, len(names))
	for i, name := range names {
		data, err := os.ReadFile(filepath.Clean(name))
		if err != nil {
			return err
		}
		files[i] = envoyimport.File{Name: name, Data: data}
	}
	doc, found, err := envoyimport.Import(files, envoyimport.Options{Algorithm: f.algorithm})
	for _, n := range found {
		_, _ = fmt.Fprintln(notes, "note:", n)
	}
	if err != nil {
		return err
	}
	if f.strict && len(found) > 0 {
		return errNotCarried
	}
	if f.file == "" {
		return f.write(out, doc)
	}
	file, err := os.Create(filepath.Clean(f.file))
	if err != nil {
		return err
	}
	return errors.Join(f.write(file, doc), file.Close())
}

func (f *importFlags) write(w io.Writer, doc ruledoc.Document) error {
	if f.output == "yaml" {
		return doc.WriteYAML(w)
	}
	return doc.WriteTOML(w)
}
