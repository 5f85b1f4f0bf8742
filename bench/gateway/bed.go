package main

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/bench/internal/bare"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

// bed is one upstream with both proxies in front, each a process of its own, and Redis.
//
// In one process they would keep each other's threads awake, and a proxy that waits for nobody outside, as the bare one then
// does, would look faster than any can be.
type bed struct {
	redis         *testredis.Server
	client        rueidis.Client
	script        string // the SHA-1 of bare.Bucket
	limiter       *sluice.Limiter
	bare, gateway target
	worker        *worker // of the gateway
}

func newBed(p *testredis.Main) (*bed, error) {
	t := &bed{redis: testredis.Single(p, testredis.Options{})}
	var err error
	t.client, err = rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{t.redis.Addr()}, DisableCache: true, ForceSingleClient: true})
	if err != nil {
		return nil, err
	}
	p.Cleanup(t.client.Close)
	reply, err := t.redis.Do("SCRIPT", "LOAD", bare.Bucket)
	if err != nil {
		return nil, err
	}
	t.script, _ = reply.(string)
	if t.limiter, err = newLimiter(p, t.redis.Addr()); err != nil {
		return nil, err
	}
	upstream, err := startWorker(p, part{Role: "upstream"})
	if err != nil {
		return nil, err
	}
	bare, err := startWorker(p, part{Role: "bare", Upstream: upstream.addr})
	if err != nil {
		return nil, err
	}
	t.worker, err = startWorker(p, part{Role: "gateway", Upstream: upstream.addr, Redis: t.redis.Addr(), Profile: *profile})
	if err != nil {
		return nil, err
	}
	t.bare.addr, t.gateway.addr = bare.addr, t.worker.addr
	return t, nil
}

// newLimiter counts by user.
func newLimiter(p *testredis.Main, redis string) (*sluice.Limiter, error) {
	conn, err := rueidisconn.New(rueidisconn.Options{Addrs: []string{redis}})
	if err != nil {
		return nil, err
	}
	p.Cleanup(conn.Close)
	rules, faults := sluice.Compile([]sluice.Rule{{
		Name: "per-user", Key: []sluice.Dimension{sluice.User}, Match: sluice.Match{Routes: []string{"/api/*"}},
		Limits: []sluice.Limit{sluice.Bucket(100_000, time.Minute, 100_000)},
	}})
	if len(faults) > 0 {
		return nil, faults[0]
	}
	// The connections saturate both cores, so a decision waits longer than its usual deadline.
	return sluice.New(redisstore.New(conn, redisstore.Options{}), rules, sluice.Options{Timeout: 5 * time.Second}), nil
}

// roundTrip is the least that a decision by Redis takes: one call of the bare script.
func (t *bed) roundTrip(ctx context.Context, _ int, n int64) error {
	key := "b:" + strconv.FormatInt(n%users, 10)
	room, err := t.client.Do(ctx, t.client.B().Evalsha().Sha1(t.script).Numkeys(1).Key(key).Arg("600", "60000000", "120001").Build()).AsInt64()
	if err == nil && room < 0 {
		return errors.New("the bare script refused, it was meant to admit everything")
	}
	return err
}

// get is a call of Redis that does nothing.
func (t *bed) get(ctx context.Context, _ int, _ int64) error {
	err := t.client.Do(ctx, t.client.B().Get().Key("absent").Build()).Error()
	if rueidis.IsRedisNil(err) {
		return nil
	}
	return err
}

// check is a decision and nothing else.
func (t *bed) check(ctx context.Context, _ int, n int64) error {
	_, err := t.limiter.Check(ctx, sluice.Request{Subject: sluice.Subject{User: strconv.FormatInt(n%users, 10)}, Route: "/api/items/42", Method: http.MethodGet})
	return err
}
