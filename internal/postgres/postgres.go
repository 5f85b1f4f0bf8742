// Package postgres keeps the registry in PostgreSQL: what operators write, who wrote it, and what nodes read of it.
//
// A DB is the nodes' side: it reads everything, writes heartbeats and uses, and no entry. DB.As gives the operators' side: every call runs
// in a transaction that names the namespaces of the actor's grants, and row-level security in the database holds it to them. What belongs to
// no namespace (tiers, subjects, keys, blocks, exemptions, tokens) acts in all of them and takes a grant for "*"; only tiers can be read with
// any grant.
//
// Every change is one transaction: the entry, its row in the history, the next revision and a notice to those who listen. Writers take the
// revision's row first and so come one after the other: revisions have no gaps and become visible in their order. Changes are chained by hashes; see
// VerifyHistory.
//
// Statements are in queries/*.sql. The text of none is put together at run time.
package postgres

import (
	"context"
	"crypto/tls"
	_ "embed"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/tracelog"
)

// Options says how the database is reached. URL is required.
type Options struct {
	// URL is that of the database, as postgres://sluice_app:password@host:5432/sluice. All of libpq's parameters can be given.
	URL string
	// ListenURL is where Listen connects, for those whose URL leads to a pooler that hands out connections by transaction. Default: URL.
	ListenURL string
	// MaxConns is how many connections are open at most. They are opened when needed, and closed when idle for 30 s. Default 4.
	MaxConns int
	// TLS replaces what the URL says about certificates. Default: by the URL.
	TLS *tls.Config
	// Timeout bounds each call that is not given an earlier deadline, except imports. Default 5 s.
	Timeout time.Duration
	// Log is told of notices that the database sends. Default: nobody.
	Log *slog.Logger
}

const (
	defaultMaxConns = 4
	defaultTimeout  = 5 * time.Second
	// connectTimeout bounds one attempt to connect where the URL has no connect_timeout. Longer, and an unreachable address uses up the
	// whole time of a call before another of the URL's addresses is tried.
	connectTimeout = 2 * time.Second
	// idleTime is after how long an idle connection is closed. A thousand nodes that ask now and then hold few connections by it.
	idleTime = 30 * time.Second
	// lifeTime bounds a connection's age, so that nodes follow when addresses behind a name change.
	lifeTime = 30 * time.Minute
)

// DB is a database. It is safe for concurrent use.
type DB struct {
	pool    *pgxpool.Pool
	listen  *pgx.ConnConfig
	timeout time.Duration
}

// Open checks the options and connects to nothing: it succeeds while the database is down. The context is not kept.
func Open(ctx context.Context, opts Options) (*DB, error) {
	cfg, err := pgxpool.ParseConfig(opts.URL)
	if err != nil {
		return nil, fmt.Errorf("database url: %w", hidePassword(err))
	}
	listen := cfg.ConnConfig.Copy()
	if opts.ListenURL != "" {
		if listen, err = pgx.ParseConfig(opts.ListenURL); err != nil {
			return nil, fmt.Errorf("database listen_url: %w", hidePassword(err))
		}
	}
	for _, c := range []*pgx.ConnConfig{cfg.ConnConfig, listen} {
		adjust(c, opts)
	}
	cfg.MaxConns = int32(orDefault(opts.MaxConns, defaultMaxConns))
	cfg.MinConns, cfg.MinIdleConns = 0, 0
	cfg.MaxConnIdleTime, cfg.MaxConnLifetime, cfg.MaxConnLifetimeJitter = idleTime, lifeTime, lifeTime/10
	cfg.HealthCheckPeriod = idleTime / 3
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	return &DB{pool: pool, listen: listen, timeout: orDefault(opts.Timeout, defaultTimeout)}, nil
}

// adjust applies the options to the configuration of a connection.
func adjust(c *pgx.ConnConfig, opts Options) {
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connectTimeout
	}
	if opts.TLS != nil {
		c.TLSConfig = opts.TLS.Clone()
		if c.TLSConfig.ServerName == "" {
			c.TLSConfig.ServerName = c.Host
		}
		for _, f := range c.Fallbacks {
			f.TLSConfig = opts.TLS.Clone()
			if f.TLSConfig.ServerName == "" {
				f.TLSConfig.ServerName = f.Host
			}
		}
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "sluice"
	}
	if opts.Log != nil {
		c.Tracer = &tracelog.TraceLog{Logger: logTo(opts.Log), LogLevel: tracelog.LogLevelError}
	}
}

// logTo writes the driver's lines at debug level: the error itself goes to the caller, who logs it once.
func logTo(log *slog.Logger) tracelog.LoggerFunc {
	return func(ctx context.Context, _ tracelog.LogLevel, msg string, data map[string]any) {
		log.DebugContext(ctx, "database driver", "event", msg, "error", data["err"])
	}
}

func orDefault[T int | time.Duration](v, fallback T) T {
	if v <= 0 {
		return fallback
	}
	return v
}

// Close closes all connections. Calls under way end with an error.
func (db *DB) Close() { db.pool.Close() }

// Ping asks the database for an answer.
func (db *DB) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, db.timeout)
	defer cancel()
	return fault("ping", db.pool.Ping(ctx))
}

// Conns returns the number of connections that are open now.
func (db *DB) Conns() int { return int(db.pool.Stat().TotalConns()) }

//go:embed queries/unguarded.sql
var unguardedSQL string

// Unguarded tells whether row-level security does not hold for the role of the URL: a superuser, or one that may bypass it.
func (db *DB) Unguarded(ctx context.Context) (bool, error) {
	list, err := query(ctx, db, everything, pgx.RowTo[bool], unguardedSQL)
	return len(list) > 0 && list[0], fault("look at the role", err)
}
