package app

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/directory"
	"github.com/sluicehq/sluice/internal/engine"
	"github.com/sluicehq/sluice/internal/identity"
)

// newLive returns what the database has on record about subjects, on top of what files have. Its Run is a part of the node; whoever
// hears of changes calls Invalidate, or InvalidateAll where some may have been missed.
func newLive(cfg *config.Config, files *directory.Directory, db directory.Database, log *slog.Logger) (*directory.Live, error) {
	opts := directory.LiveOptions{Pepper: cfg.Control.Pepper.Reveal(), Wait: cfg.Limiter.Timeout.Std(), Log: log, Now: time.Now}
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
