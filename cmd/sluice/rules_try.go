package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/ruletest"
)

// traceReport is how one trace came out.
type traceReport struct {
	File        string                `json:"file"`
	Steps       int                   `json:"steps"`
	Differences []ruletest.Difference `json:"differences"`
}

func newRulesTest() *cobra.Command {
	var files []string
	var output form
	cmd := &cobra.Command{
		Use:   "test TRACE...",
		Short: "Try rules on traces, without a server",
		Long: `test plays traces against the rules of files: texts that tell who asks for what, when, and what must come of it. Counters are in
memory and the clock is the trace's own, so a day takes no time. It connects to nothing, and exits with 1 when a line comes out otherwise:

  start 2026-11-15T12:00:00Z
  at 0s   user=u_42 route=/api/search            allow remaining=2
  at 12s  5 times user=u_42 route=/api/search    admitted=2
  at 12s  user=u_42 route=/api/search            refuse rule=search retry=48s
  at 13s  reset user=u_42 route=/api/search

Of a folder all *.trace files are played.`,
		Example: `  sluice rules test -f rules.d/ traces/
  sluice rules test --file rules.toml login.trace --output json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			reports, err := playTraces(cmd.Context(), cmd.ErrOrStderr(), files, args)
			if err != nil {
				return err
			}
			return printReports(cmd.OutOrStdout(), &output, reports)
		},
	}
	cmd.Flags().StringArrayVarP(&files, "file", "f", nil, "a rules file, or a folder of them; repeatable")
	output.addTo(cmd, "table", "json", "yaml")
	return cmd
}

func playTraces(ctx context.Context, notes io.Writer, files, traces []string) ([]traceReport, error) {
	parts, err := readRules(notes, files)
	if err != nil {
		return nil, err
	}
	rules, faults := ruletest.NewRules(parts...)
	if err := tellFaults(notes, faults); err != nil {
		return nil, err
	}
	names, err := listFiles(traces, func(name string) bool { return filepath.Ext(name) == ".trace" })
	if err != nil {
		return nil, err
	}
	parsed, err := parseTraces(names)
	if err != nil {
		return nil, err
	}
	var reports []traceReport
	for _, t := range parsed {
		differences, err := t.Run(ctx, rules)
		if err != nil {
			return nil, err
		}
		reports = append(reports, traceReport{t.Name, t.Len(), differences})
	}
	return reports, nil
}

// parseTraces reads all before any is played, so that one run shows every fault.
func parseTraces(names []string) ([]*ruletest.Trace, error) {
	var traces []*ruletest.Trace
	var faults []error
	for _, name := range names {
		text, err := os.ReadFile(filepath.Clean(name))
		if err != nil {
			return nil, err
		}
		t, err := ruletest.Parse(name, string(text))
		traces, faults = append(traces, t), append(faults, err)
	}
	return traces, errors.Join(faults...)
}

func printReports(w io.Writer, output *form, reports []traceReport) error {
	steps, differ := 0, 0
	var text strings.Builder
	for _, r := range reports {
		steps, differ = steps+r.Steps, differ+len(r.Differences)
		verdict := "ok  "
		if len(r.Differences) > 0 {
			verdict = "FAIL"
		}
		fmt.Fprintf(&text, "%s  %s: %s\n", verdict, r.File, counted(r.Steps, "line"))
		for _, d := range r.Differences {
			fmt.Fprintln(&text, d)
		}
	}
	var err error
	if output.value == "table" {
		_, err = io.WriteString(w, text.String())
	} else {
		err = output.printValue(w, map[string]any{"traces": reports})
	}
	if err == nil && differ > 0 {
		return fmt.Errorf("%d of %s came out otherwise", differ, counted(steps, "line"))
	}
	return err
}
