// Package doctor looks at a configuration and the Redis it names, and tells what is amiss and how to cure it.
package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

// Grade is how bad a finding is.
type Grade string

// The grades.
const (
	Fine    Grade = "fine"
	Warning Grade = "warning" // works, and will bite
	Fault   Grade = "fault"   // limits are not kept, or callers can choose who they are
)

// Finding is one thing looked at.
type Finding struct {
	Topic string `json:"topic"`
	Grade Grade  `json:"grade"`
	Found string `json:"found"`
	// Cure is what to do about it; empty when it is fine.
	Cure string `json:"cure,omitempty"`
}

// patience bounds everything that is asked of Redis.
const patience = 5 * time.Second

// Examine looks at everything. It charges no counter but one of its own.
func Examine(ctx context.Context, cfg *config.Config, redis rueidisconn.Options) []Finding {
	findings := settings(cfg)
	if cfg.Redis.URL == config.MemoryURL {
		return append(findings, Finding{
			"redis", Warning, "counters are kept in this process",
			"set redis.url before a second node runs: two would each admit the whole limit",
		})
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client, err := connect(redis)
	if err != nil {
		return append(findings, Finding{"redis", Fault, err.Error(), "start Redis, or correct redis.url, its credentials and redis.ca_file"})
	}
	defer client.Close()
	return append(findings, examineRedis(ctx, cfg, redis, client)...)
}

func connect(opts rueidisconn.Options) (rueidis.Client, error) {
	option, err := opts.ClientOption()
	if err != nil {
		return nil, err
	}
	client, err := rueidis.NewClient(option)
	if err != nil {
		return nil, fmt.Errorf("cannot reach %v: %w", opts.Addrs, err)
	}
	return client, nil
}
