package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/certs"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/control"
	"github.com/sluicehq/sluice/internal/postgres"
	"github.com/sluicehq/sluice/internal/registry"
)

// openControl prepares the database and the node's part in handing its rules on, where one is configured. It connects lazily: a node
// starts while both are down.
func (a *App) openControl(cfg *config.Config) error {
	if cfg.Database.URL == "" {
		return nil
	}
	opts := control.Options{
		Node: cfg.Node, Version: a.opts.Version, SnapshotFile: cfg.Control.SnapshotFile, Log: a.log,
		Taken:    func() sluice.Revision { return a.feed.Status().Kept },
		OnNotice: a.noticed,
	}
	if cfg.Redis.URL != config.MemoryURL {
		redis, err := RedisOptions(&cfg.Redis)
		if err != nil {
			return err
		}
		client, err := redis.ClientOption()
		if err != nil {
			return fmt.Errorf("redis: %w", err)
		}
		opts.Redis = &client
	}
	var err error
	if a.database, err = openDatabase(&cfg.Database, a); err != nil {
		return err
	}
	if a.live, err = newLive(cfg, a.directory, a.database, a.counters.nodes, a.log); err != nil {
		return err
	}
	countLookups(a.live, a.metrics)
	a.control = control.New(a.database, cfg.Node+"#"+rand.Text(), opts)
	a.metrics.Gauge("sluice_database_up", "0 while the database did not answer when this node last asked it.", a.databaseUp)
	return nil
}

func openDatabase(cfg *config.Database, a *App) (*postgres.DB, error) {
	opts := postgres.Options{URL: cfg.URL, ListenURL: cfg.ListenURL, MaxConns: cfg.MaxConns, Log: a.log}
	if cfg.CAFile != "" {
		client, err := certs.NewClient(certs.ClientFiles{CAFile: cfg.CAFile}, certs.Options{})
		if err != nil {
			return nil, fmt.Errorf("database: %w", err)
		}
		opts.TLS = client.Config()
	}
	return postgres.Open(context.Background(), opts) // dials nothing, and keeps no context
}

// noticed forgets what is known of a subject whose record changed. Of rules the feed hears by itself.
func (a *App) noticed(n registry.Notice) { a.live.Notice(n) }

func (a *App) closeControl() {
	if a.control != nil {
		a.control.Close()
		a.database.Close()
	}
}

// firstRules loads the rules that the node starts with. Without any from the database it starts all the same, and turns everything away
// until there are: a node that ends would only be started again.
func (a *App) firstRules(ctx context.Context) error {
	if a.control != nil {
		if err := a.control.First(ctx); err != nil {
			a.log.Error("not ready until the database's rules are known", "error", err)
		}
	}
	err := a.feed.Load(ctx)
	if errors.Is(err, control.ErrNoRules) {
		a.engine.Hold()
		return nil
	}
	return err
}

// runFeed keeps rules current, from the first ones on, which may be still to come.
func (a *App) runFeed(ctx context.Context) error {
	for a.feed.Status().LoadedAt.IsZero() {
		if err := a.control.Wait(ctx); err != nil {
			return err
		}
		if err := a.feed.Load(ctx); err != nil && !errors.Is(err, control.ErrNoRules) {
			return err
		}
	}
	a.engine.Release()
	return a.feed.Run(ctx)
}
