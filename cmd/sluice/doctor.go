package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/app"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/doctor"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

func newDoctor(flags *config.Flags) *cobra.Command {
	var output form
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is amiss with the configuration and its Redis, and how to cure it",
		Long: `doctor reads the configuration as serve would and looks at the Redis it names: its mode and version, eviction, clock, latency,
whether scripts run; and at the hash key, the trust in proxies, tokens and TLS. It exits with 1 when there is a fault.`,
		Example: `  sluice doctor
  sluice doctor --config /etc/sluice/sluice.toml --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			loaded, err := config.Load(flags.Options())
			if err != nil {
				return err
			}
			var redis rueidisconn.Options
			if loaded.Config.Redis.URL != config.MemoryURL {
				if redis, err = app.RedisOptions(&loaded.Config.Redis); err != nil {
					return err
				}
			}
			findings := doctor.Examine(cmd.Context(), &loaded.Config, redis)
			return printFindings(cmd.OutOrStdout(), findings, output.json())
		},
	}
	output.addTo(cmd, "text", "json")
	return cmd
}

var errFaultsFound = errors.New("there are faults")

func printFindings(w io.Writer, findings []doctor.Finding, asJSON bool) error {
	faults := false
	for _, f := range findings {
		faults = faults || f.Grade == doctor.Fault
	}
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		if err := enc.Encode(findings); err != nil {
			return err
		}
	} else {
		marks := map[doctor.Grade]string{doctor.Fine: "ok", doctor.Warning: "WARN", doctor.Fault: "FAULT"}
		table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
		for _, f := range findings {
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", marks[f.Grade], f.Topic, f.Found)
			if f.Cure != "" {
				_, _ = fmt.Fprintf(table, "\t\t  cure: %s\n", f.Cure)
			}
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	if faults {
		return errFaultsFound
	}
	return nil
}
