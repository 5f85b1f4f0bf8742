package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/app"
	"github.com/sluicehq/sluice/internal/config"
)

//go:embed dev_rules.toml
var devRules []byte

func newDev() *cobra.Command {
	var quiet bool
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Try sluice: no Redis, sample rules, a demo upstream, curl lines to paste",
		Long: `dev runs a node with sample rules that counts in memory, in front of a demo upstream, and prints commands to try. It
writes the rules to a folder of its own: change them there, and they act at once.`,
		Example: "  sluice dev",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDev(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), quiet)
		},
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "log warnings only")
	return cmd
}

func runDev(ctx context.Context, out, logTo io.Writer, quiet bool) error {
	dir, err := os.MkdirTemp("", "sluice-dev-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	rules := filepath.Join(dir, "rules.d")
	if err := os.Mkdir(rules, 0o700); err != nil {
		return err
	}
	rulesFile := filepath.Join(rules, "rules.toml")
	if err := os.WriteFile(rulesFile, devRules, 0o600); err != nil {
		return err
	}
	upstream, err := startDemo(ctx)
	if err != nil {
		return err
	}
	defer upstream.stop()
	token := rand.Text()
	level := "info"
	if quiet {
		level = "warn"
	}
	load := func() (*config.Loaded, error) { return loadDev(dir, rules, upstream.url, token, level) }
	loaded, err := load()
	if err != nil {
		return err
	}
	node, err := app.New(loaded, app.Options{
		Load: load, LogTo: logTo, Version: version(), AnyPort: true,
		Ready: func(addr map[string]string) { printDev(out, addr, token, rulesFile) },
	})
	if err != nil {
		return err
	}
	return node.Run(ctx)
}

// loadDev makes the configuration of a node that needs nothing and trusts this machine.
func loadDev(dir, rules, upstream, token, level string) (*config.Loaded, error) {
	file := filepath.Join(dir, "sluice.toml")
	text := fmt.Sprintf(`
[redis]
url = "memory"
[rules]
dir = %q
[gateway]
listen = "127.0.0.1:8000"
[[gateway.upstream]]
name = "demo"
url = %q
[[gateway.route]]
path = "/"
upstream = "demo"
[identity]
trusted_proxies = ["127.0.0.0/8", "::1/128"]
headers = { user = "X-User", tier = "X-Tier" }
[admin]
token = %q
[log]
level = %q
[shutdown]
grace = "1ms"
`, rules, upstream, token, level)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	return config.Load(config.Options{Path: file, Environ: []string{}})
}

func printDev(out io.Writer, addr map[string]string, token, rulesFile string) {
	_, _ = fmt.Fprintf(out, `
sluice dev: counting in memory, rules in %[4]s

Ask whether user u_42 may search (costs 5 of 10 units, so the third time is refused):
  curl -i http://%[1]s/v1/check --json '{"subject":{"user":"u_42"},"route":"/search"}'

Go through the gateway to a demo upstream (5 requests in 10 seconds for each user):
  curl -i -H 'X-User: u_42' http://%[2]s/hello

See why, without charging anything:
  curl -s http://%[1]s/v1/explain --json '{"subject":{"user":"u_42"},"route":"/search"}'

Watch refusals as they happen, and look at the node:
  SLUICE_ADMIN__TOKEN=%[5]s sluice tail --admin http://%[3]s
  curl -s -H 'Authorization: Bearer %[5]s' http://%[3]s/v1/status

Change the rules file and ask again. Stop with Ctrl-C.

`, addr["http"], addr["gateway"], addr["admin"], rulesFile, token)
}

// demo is an upstream that greets.
type demo struct {
	url  string
	stop func()
}

func startDemo(ctx context.Context) (*demo, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the demo upstream: %w", err)
	}
	s := &http.Server{
		ReadHeaderTimeout: 5 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprintf(w, "Hello from the demo upstream: %s %s\n", r.Method, r.URL.Path)
		}),
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	return &demo{url: "http://" + l.Addr().String(), stop: func() {
		_ = s.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			_, _ = fmt.Fprintln(os.Stderr, "demo upstream:", err)
		}
	}}, nil
}
