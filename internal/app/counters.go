package app

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/certs"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/memstore"
	"github.com/sluicehq/sluice/redisstore"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

// counters is where limits are counted: Redis, or this process.
type counters struct {
	store sluice.Store
	// keyOf names a counter's key for people; nil in memory.
	keyOf func(sluice.Key, sluice.Limit) string
	// nodes tells how many share the limits.
	nodes func() int
	// run keeps the count of nodes; it blocks.
	run   func(ctx context.Context) error
	close func()
}

// openCounters connects lazily: a node starts while Redis is down.
func openCounters(cfg *config.Config, onBreaker func(shard string, open bool)) (*counters, error) {
	if cfg.Redis.URL == config.MemoryURL {
		return &counters{
			store: memstore.New(memstore.Options{}),
			nodes: func() int { return 1 },
			run:   func(ctx context.Context) error { <-ctx.Done(); return nil },
			close: func() {},
		}, nil
	}
	opts, err := RedisOptions(&cfg.Redis)
	if err != nil {
		return nil, err
	}
	opts.OnBreaker = onBreaker
	conn, err := rueidisconn.New(opts)
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	var storeOpts redisstore.Options
	if text := cfg.Redis.HashKey.Reveal(); text != "" {
		if _, err := hex.Decode(storeOpts.HashKey[:], []byte(text)); err != nil {
			return nil, fmt.Errorf("redis.hash_key: %w", err)
		}
	}
	store := redisstore.New(conn, storeOpts)
	nodes := redisstore.NewNodes(conn, cfg.Node)
	c := &counters{store: store, keyOf: store.KeyOf, nodes: nodes.Count, run: nodes.Run, close: conn.Close}
	if cfg.Limiter.Nodes > 0 {
		c.nodes = func() int { return cfg.Limiter.Nodes }
	}
	return c, nil
}

// RedisOptions says how the configuration reaches Redis.
func RedisOptions(cfg *config.Redis) (rueidisconn.Options, error) {
	opts, err := rueidisconn.ParseURL(cfg.URL)
	if err != nil {
		return opts, fmt.Errorf("redis.url: %w", err)
	}
	if cfg.Username != "" {
		opts.Username = cfg.Username
	}
	if cfg.Password != "" {
		opts.Password = cfg.Password.Reveal()
	}
	if opts.TLS != nil {
		client, err := certs.NewClient(certs.ClientFiles{CAFile: cfg.CAFile, CertFile: cfg.CertFile, KeyFile: cfg.KeyFile}, certs.Options{})
		if err != nil {
			return opts, fmt.Errorf("redis: %w", err)
		}
		opts.TLS = client.Config()
		opts.Dial = func(ctx context.Context, dialer *net.Dialer, addr string) (net.Conn, error) {
			return client.Dial(ctx, dialer, "tcp", addr)
		}
	}
	return opts, nil
}
