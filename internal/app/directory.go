package app

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/directory"
	"github.com/sluicehq/sluice/internal/engine"
	"github.com/sluicehq/sluice/internal/identity"
	"github.com/sluicehq/sluice/internal/telemetry"
)

// newLive returns what the database has on record about subjects, on top of what files have. Its Run is a part of the node; whoever
// hears of changes calls Invalidate, or InvalidateAll where some may have been missed.
func newLive(cfg *config.Config, files *directory.Directory, db directory.Database, nodes func() int, log *slog.Logger) (*directory.Live, error) {
	opts := directory.LiveOptions{Pepper: cfg.Control.Pepper.Reveal(), Wait: cfg.Limiter.Timeout.Std(), Nodes: nodes, Log: log, Now: time.Now}
	if cfg.Redis.URL != config.MemoryURL {
		redis, err := RedisOptions(&cfg.Redis)
		if err != nil {
			return nil, err
		}
		option, err := redis.ClientOption()
		if err != nil {
			return nil, fmt.Errorf("redis: %w", err)
		}
		opts.Redis = directory.NewRedis(option, opts.Pepper+cfg.Redis.HashKey.Reveal())
	}
	return directory.NewLive(files, db, opts), nil
}

// countLookups shows what the directory does among the node's metrics.
func countLookups(live *directory.Live, metrics *telemetry.Metrics) {
	for _, c := range []struct {
		name, help string
		read       func(directory.Stats) int64
	}{
		{"sluice_directory_misses_total", "Names that were not in memory.", func(s directory.Stats) int64 { return s.Misses }},
		{"sluice_directory_questions_total", "Queries to the database, each about many names.", func(s directory.Stats) int64 { return s.Questions }},
		{"sluice_directory_from_redis_total", "Names that Redis knew.", func(s directory.Stats) int64 { return s.FromRedis }},
		{"sluice_directory_from_database_total", "Names that the database was asked about.", func(s directory.Stats) int64 { return s.FromDatabase }},
		{"sluice_directory_failures_total", "Queries that the database did not answer.", func(s directory.Stats) int64 { return s.Failures }},
		{
			"sluice_directory_unanswered_total", "Names that a request could not wait for any longer: it was decided by what was known.",
			func(s directory.Stats) int64 { return s.Unanswered },
		},
		{
			"sluice_directory_uses_dropped_total", "Uses of API keys that were not written, because too many keys were in use.",
			func(s directory.Stats) int64 { return s.UsesDropped },
		},
	} {
		metrics.Count(c.name, c.help, func() int64 { return c.read(live.Stats()) })
	}
}

// subjectsOf is whom the engine asks about subjects. Live is nil where there is no database.
func subjectsOf(live *directory.Live, files *directory.Directory) engine.Directory {
	if live == nil {
		return files
	}
	return live
}

// keysOf is whom the doors ask about API keys; nil: nobody, because without a database and a pepper there are none.
func keysOf(cfg *config.Config, live *directory.Live) identity.KeyVerifier {
	if live == nil || cfg.Control.Pepper == "" {
		return nil
	}
	return live
}
