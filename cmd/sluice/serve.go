package main

import (
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/app"
	"github.com/sluicehq/sluice/internal/config"
)

func newServe(flags *config.Flags) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Run a node: check API, Envoy RLS, forward-auth, gateway",
		Long: `serve runs a node until it is told to stop (SIGTERM, Ctrl-C). It then says that it is not ready, goes on answering for
shutdown.grace, finishes what is under way, and ends.

Rules and most settings act while it runs: it reads its files again when they change, and on SIGHUP. A file with a
fault changes nothing; the fault is told in the log, in the metrics and by "sluice status".`,
		Example: `  sluice serve
  sluice serve --config /etc/sluice/sluice.toml
  SLUICE_REDIS__URL=redis://10.0.0.5:6379 sluice serve --set http.listen=:8080`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			tuneMemory()
			reload := make(chan os.Signal, 1)
			signal.Notify(reload, syscall.SIGHUP) // first: without it the signal ends the process
			defer signal.Stop(reload)
			load := func() (*config.Loaded, error) { return config.Load(flags.Options()) }
			loaded, err := load()
			if err != nil {
				return err
			}
			node, err := app.New(loaded, app.Options{Load: load, Reload: reload, LogTo: cmd.ErrOrStderr(), Version: version()})
			if err != nil {
				return err
			}
			return node.Run(cmd.Context())
		},
	}
}

// A node keeps little in memory and makes much garbage, so collecting five times as seldom as Go would is worth a fifth of
// its CPU. The limit is soft: near it Go collects as often as it must, which a node with a million fallback counters does.
const (
	garbagePercent = 400
	memoryLimit    = 264 << 20 // with it a node stays below 300 MB, 10 million subjects or not
)

// tuneMemory trades memory for CPU, unless Go's own variables say otherwise.
func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}
