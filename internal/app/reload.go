package app

import (
	"bytes"
	"context"
	"os"
	"slices"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/watch"
)

// watchConfig reads the configuration again when it changes, or when somebody asks.
func (a *App) watchConfig(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	notice := func() {
		select {
		case changed <- struct{}{}:
		default: // one is waiting already
		}
	}
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		if path := a.config.Load().Path; path != "" {
			a.watchFile(ctx, path, notice)
		}
	}()
	defer func() { <-watching }()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.opts.Reload:
			a.reload(ctx)
			a.rules.again()
		case <-changed:
			a.reload(ctx)
		}
	}
}

// watchFile calls notice when the configuration file is another than the one in force, also when it was changed while the
// node started.
func (a *App) watchFile(ctx context.Context, path string, notice func()) {
	since := watch.Sum(path)
	now, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err == nil && !bytes.Equal(now, a.config.Load().Text) {
		notice()
	}
	_ = watch.Watch(ctx, []string{path}, notice, watch.Options{Since: since, OnTrouble: func(err error) {
		a.log.Warn("changes of the configuration are found by polling", "error", err)
	}})
}

// reload puts a changed configuration in force, as far as it acts while a node runs. One with a fault changes nothing.
func (a *App) reload(ctx context.Context) {
	old := a.config.Load()
	loaded, err := a.opts.Load()
	var kept *config.Loaded
	var next *front
	if err == nil {
		kept = keepRestarted(old, loaded)
		next, err = a.newFront(&kept.Config)
	}
	if err == nil {
		err = a.level.UnmarshalText([]byte(kept.Config.Log.Level)) // last, so that a fault before it changes nothing
	}
	a.metrics.ConfigReloaded(err)
	if err != nil {
		a.pending.Store(&pending{fault: err, restart: a.pending.Load().restart})
		a.log.Error("the configuration was not taken: the last good one stays", "error", err)
		return
	}
	for _, warning := range loaded.Warnings {
		a.log.Warn("configuration", "warning", warning)
	}
	restart := config.RestartNeeded(&old.Config, &loaded.Config)
	a.pending.Store(&pending{restart: restart})
	next.identity.Inherit(a.front.Load().identity)
	next.run(context.WithoutCancel(ctx))
	a.config.Store(kept)
	a.limiter.SetEnabled(kept.Config.Enabled)
	a.front.Swap(next).end()
	a.rules.use(rulesOf(kept))
	a.log.Info("configuration reloaded", "restart_needed", slices.Clone(restart))
}

// keepRestarted is the new configuration with the old one's settings where these need a restart, so that what is shown and
// compared later is what acts.
func keepRestarted(old, loaded *config.Loaded) *config.Loaded {
	kept := *loaded
	c := &kept.Config
	o := &old.Config
	c.Node, c.HTTP, c.GRPC, c.Redis, c.Limiter, c.Shutdown = o.Node, o.HTTP, o.GRPC, o.Redis, o.Limiter, o.Shutdown
	c.Admin.Listen, c.Admin.TLS, c.Admin.Pprof = o.Admin.Listen, o.Admin.TLS, o.Admin.Pprof
	c.Gateway.Listen, c.Gateway.TLS = o.Gateway.Listen, o.Gateway.TLS
	c.Log.Format, c.Database, c.Control = o.Log.Format, o.Database, o.Control
	return &kept
}
