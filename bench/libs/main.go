// Command libs compares decisions per second and Redis CPU per decision with the Go libraries people use today, each
// with the client and settings its documentation shows, interleaved on one Redis.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/bench/internal/load"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

var (
	rounds  = flag.Int("rounds", 7, "interleaved rounds; the median counts")
	runTime = flag.Duration("run", 800*time.Millisecond, "length of one run")
	callers = flag.Int("callers", 64, "concurrent callers")
)

// perMinute is more than any key is asked for: every decision is an admission.
const (
	users     = 100_000
	perMinute = 100_000
)

var errRefused = errors.New("refused, though the limit is far away")

func main() {
	b := bar.New("bar-libs")
	program := testredis.Program()
	defer program.Close()
	server := testredis.Single(program, testredis.Options{})
	contestants, err := open(server.Addr())
	if err != nil {
		b.Fatal(err)
	}
	results, err := contest(b, []*testredis.Server{server}, contestants)
	if err != nil {
		b.Fatal(err)
	}
	ratio := func(ours, theirs string, of func(load.Result) float64) float64 {
		var ratios []float64
		for _, round := range results {
			ratios = append(ratios, of(round[ours])/of(round[theirs]))
		}
		return bar.Median(ratios)
	}
	b.AtLeast("sluice token bucket : redis_rate", ratio("sluice token bucket", "redis_rate", load.Result.Rate), 1.6, 2.5)
	b.AtLeast("sluice token bucket : throttled", ratio("sluice token bucket", "throttled", load.Result.Rate), 3, 5)
	b.AtLeast("sluice fixed window : ulule/limiter", ratio("sluice fixed window", "ulule/limiter", load.Result.Rate), 1.2, 2)
	b.AtMost("Redis CPU per decision : redis_rate's", ratio("sluice token bucket", "redis_rate", load.Result.RedisMicros), 0.65, 0.5)
	b.End()
}

// contest runs every contestant once a round, in random order.
func contest(b *bar.Bar, servers []*testredis.Server, contestants map[string]load.Op) ([]map[string]load.Result, error) {
	names := []string{"sluice token bucket", "sluice fixed window", "redis_rate", "throttled", "ulule/limiter"}
	rows := make([]map[string]load.Result, *rounds)
	for round := range rows {
		rows[round] = map[string]load.Result{}
		for _, i := range rand.Perm(len(names)) {
			r, err := load.Run(context.Background(), *callers, *runTime, servers, contestants[names[i]])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", names[i], err)
			}
			rows[round][names[i]] = r
		}
		for _, name := range names {
			r := rows[round][name]
			b.Say("round %d  %-20s %8.0f/s  client %5.1f µs CPU  Redis %5.1f µs CPU", round+1, name, r.Rate(), r.ClientMicros(), r.RedisMicros())
		}
	}
	return rows, nil
}

func open(addr string) (map[string]load.Op, error) {
	keys := make([]string, users)
	for i := range keys {
		keys[i] = fmt.Sprintf("user-%08d", i)
	}
	key := func() string { return keys[rand.IntN(users)] }
	ops := map[string]load.Op{}

	for name, limit := range map[string]sluice.Limit{
		"sluice token bucket": sluice.Bucket(perMinute, time.Minute, perMinute),
		"sluice fixed window": {Algorithm: sluice.FixedWindow, Limit: perMinute, Window: time.Minute},
	} {
		conn, err := rueidisconn.Open("redis://" + addr)
		if err != nil {
			return nil, err
		}
		l := sluice.New(redisstore.New(conn, redisstore.Options{}), sluice.PerKey(limit), sluice.Options{Timeout: 5 * time.Second})
		ops[name] = func(ctx context.Context, _ int, _ int64) error {
			d, err := l.Allow(ctx, key())
			return verdict(d.Allowed && d.Mode == sluice.Exact, errors.Join(err, d.StoreErr))
		}
	}

	rate := redis_rate.NewLimiter(redis.NewClient(&redis.Options{Addr: addr}))
	ops["redis_rate"] = func(ctx context.Context, _ int, _ int64) error {
		r, err := rate.Allow(ctx, key(), redis_rate.PerMinute(perMinute))
		return verdict(err == nil && r.Allowed > 0, err)
	}

	store, err := goredisstore.NewCtx(redis.NewClient(&redis.Options{Addr: addr}), "throttled:")
	if err != nil {
		return nil, err
	}
	gcra, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerMin(perMinute), MaxBurst: perMinute - 1})
	if err != nil {
		return nil, err
	}
	ops["throttled"] = func(ctx context.Context, _ int, _ int64) error {
		refused, _, err := gcra.RateLimitCtx(ctx, key(), 1)
		return verdict(!refused, err)
	}

	ulule, err := ululeredis.NewStore(redis.NewClient(&redis.Options{Addr: addr}))
	if err != nil {
		return nil, err
	}
	fixed := limiter.New(ulule, limiter.Rate{Period: time.Minute, Limit: perMinute})
	ops["ulule/limiter"] = func(ctx context.Context, _ int, _ int64) error {
		r, err := fixed.Get(ctx, key())
		return verdict(!r.Reached, err)
	}
	return ops, nil
}

func verdict(allowed bool, err error) error {
	if err == nil && !allowed {
		return errRefused
	}
	return err
}
