// Package app puts a node together, runs it and stops it. It is the only package that knows all others.
package app

import (
	"context"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/adminhttp"
	"github.com/sluicehq/sluice/internal/checkgrpc"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/control"
	"github.com/sluicehq/sluice/internal/directory"
	"github.com/sluicehq/sluice/internal/engine"
	"github.com/sluicehq/sluice/internal/envoyrls"
	"github.com/sluicehq/sluice/internal/postgres"
	"github.com/sluicehq/sluice/internal/rulefeed"
	"github.com/sluicehq/sluice/internal/telemetry"
	"github.com/sluicehq/sluice/memstore"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

// Options say how a node runs, beyond its configuration.
type Options struct {
	// Load reads the configuration again, when it changed. Required.
	Load func() (*config.Loaded, error)
	// Reload asks for that. Default: only changes of the files do.
	Reload <-chan os.Signal
	// LogTo is where the log is written. Default: nowhere.
	LogTo io.Writer
	// Version is told to operators.
	Version string
	// AnyPort takes free ports where the configured ones are taken. Default false.
	AnyPort bool
	// Ready is told the addresses of all listeners, by their names, once they answer. Default: nobody.
	Ready func(addresses map[string]string)
}

// App is a node.
type App struct {
	opts    Options
	started time.Time
	log     *slog.Logger
	level   *slog.LevelVar

	config  atomic.Pointer[config.Loaded] // in force, but for what needs a restart
	pending atomic.Pointer[pending]

	metrics  *telemetry.Metrics
	outages  *telemetry.Outages
	tail     *telemetry.Tail
	traces   *telemetry.Traces
	observer *telemetry.Observer
	recent   *adminhttp.Recent

	database  *postgres.DB    // nil: none is configured
	control   *control.Plane  // nil with it
	live      *directory.Live // nil with it, too
	counters  *counters
	limiter   *sluice.Limiter
	directory *directory.Directory
	feed      *rulefeed.Feed
	rules     ruleFiles
	engine    *engine.Engine
	health    *adminhttp.Health

	checkG *checkgrpc.Server
	envoy  *envoyrls.Server
	front  atomic.Pointer[front]
}

// pending is what the last change of the configuration left undone.
type pending struct {
	fault   error
	restart []string
}

// New wires a node. It opens no listener, starts no goroutine and asks Redis nothing.
func New(loaded *config.Loaded, opts Options) (*App, error) {
	if opts.LogTo == nil {
		opts.LogTo = io.Discard
	}
	cfg := &loaded.Config
	a := &App{opts: opts, started: time.Now(), level: new(slog.LevelVar), directory: directory.New(time.Now)}
	a.config.Store(loaded)
	a.pending.Store(&pending{})
	if err := a.level.UnmarshalText([]byte(cfg.Log.Level)); err != nil {
		return nil, err
	}
	a.log = telemetry.Logger(opts.LogTo, cfg.Log.Format, a.level)
	for _, warning := range loaded.Warnings {
		a.log.Warn("configuration", "warning", warning)
	}

	a.metrics = telemetry.NewMetrics(prometheus.NewRegistry(), telemetry.MetricsOptions{
		Version: opts.Version, Node: cfg.Node, ErrBreaker: rueidisconn.ErrBreakerOpen,
	})
	a.outages = telemetry.NewOutages(a.metrics, a.log)
	a.tail = telemetry.NewTail(a.metrics)
	a.observer = &telemetry.Observer{Metrics: a.metrics, Outages: a.outages, Tail: a.tail}
	a.recent = adminhttp.NewRecent(a.observer)

	var err error
	if a.counters, err = openCounters(cfg, a.outages.Breaker); err != nil {
		return nil, err
	}
	rules, _ := sluice.Compile(nil)
	a.limiter = sluice.New(a.counters.store, rules, sluice.Options{
		Timeout:  cfg.Limiter.Timeout.Std(),
		Fallback: memstore.New(memstore.Options{MaxCounters: cfg.Limiter.FallbackCounters}),
		Nodes:    a.counters.nodes,
	})
	a.limiter.SetEnabled(cfg.Enabled)
	if err := a.openControl(cfg); err != nil {
		return nil, err
	}
	a.engine = engine.New(a.limiter, engine.Options{Directory: subjectsOf(a.live, a.directory), Observer: a.recent, MaxInFlight: cfg.HTTP.MaxInFlight})
	a.metrics.Watch(telemetry.Sources{InFlight: a.engine.InFlight, Overloaded: a.engine.Overloaded, Nodes: a.counters.nodes})
	a.feed = a.newFeed(loaded)
	a.health = adminhttp.NewHealth(a.probes()...)
	return a, nil
}

// openDoors makes what answers, once the first rules are in force.
func (a *App) openDoors(ctx context.Context) error {
	cfg := &a.config.Load().Config
	var err error
	if a.traces, err = telemetry.NewTraces(ctx, a.opts.Version, a.log); err != nil {
		return err
	}
	a.observer.Traces = a.traces
	a.checkG = checkgrpc.New(a.engine, checkgrpc.Options{})
	a.envoy = envoyrls.New(a.engine, a.limiter.Rules, envoyrls.Options{Log: a.log})
	f, err := a.newFront(cfg)
	if err != nil {
		return err
	}
	a.front.Store(f)
	return nil
}
