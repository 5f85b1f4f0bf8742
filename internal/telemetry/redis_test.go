package telemetry

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/engine"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/memstore"
	"github.com/sluicehq/sluice/redisstore"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

func TestOutages_OfARealRedisAreSeenInMetrics(t *testing.T) {
	t.Parallel()
	redis := testredis.Single(t, testredis.Options{})
	b := &bed{log: new(lines)}
	b.metrics = NewMetrics(prometheus.NewRegistry(), MetricsOptions{ErrBreaker: rueidisconn.ErrBreakerOpen})
	b.outages = NewOutages(b.metrics, Logger(b.log, "json", new(slog.LevelVar)))
	turned := make(chan bool, 10)
	conn, err := rueidisconn.New(rueidisconn.Options{Addrs: []string{redis.Addr()}, OnBreaker: func(shard string, open bool) {
		b.outages.Breaker(shard, open)
		turned <- open
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	rules := compile(t, userRule("api", 1000))
	b.metrics.SetRules(rules, 0)
	limiter := sluice.New(redisstore.New(conn, redisstore.Options{}), rules, sluice.Options{Fallback: memstore.New(memstore.Options{})})
	b.engine = engine.New(limiter, engine.Options{Observer: &Observer{Metrics: b.metrics, Outages: b.outages}})

	b.check(t, byUser("u_1")) // a breaker guards what was once reached
	redis.Kill()
	wait := func(open bool) {
		t.Helper()
		deadline := time.NewTimer(30 * time.Second)
		for {
			select {
			case now := <-turned:
				if now == open {
					return
				}
			case <-deadline.C:
				t.Fatalf("the breaker did not turn to open=%t", open)
			default:
				b.check(t, byUser("u_1"))
			}
		}
	}
	wait(true)
	b.check(t, byUser("u_1"))
	scraped := b.scrape(t)
	wantSeries(t, scraped, `sluice_breaker_open{shard="redis"} 1`, "sluice_degraded 1")
	if strings.Contains(scraped, `sluice_store_errors_total{kind="breaker"} 0`) {
		t.Errorf("no decision was counted as kept off by the breaker:\n%s", ours(scraped))
	}
	if err := b.outages.LastError(); err == nil {
		t.Error("no cause is known")
	}
	redis.Restart()
	wait(false)
	wantSeries(t, b.scrape(t), `sluice_breaker_open{shard="redis"} 0`)
}
