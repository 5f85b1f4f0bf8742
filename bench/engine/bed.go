package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/bench/internal/bare"
	"github.com/sluicehq/sluice/bench/internal/load"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

// bed is a Redis with the contestants on it.
type bed struct {
	name    string
	servers []*testredis.Server
	addrs   []string
	cluster bool
}

// contest is one algorithm: our rule and the bare script that does the same at the least cost.
type contest struct {
	name   string
	limit  sluice.Limit
	script string
	args   []string
}

var contests = []contest{
	{"token bucket", sluice.Bucket(100_000, time.Minute, 100_000), bare.Bucket, []string{"600", "60000000", "120001"}},
	{"sliding window", sluice.PerMinute(100_000), bare.Window, []string{"100000", "60000", "1"}},
}

var callerCounts = []int{64, 512}

func (t *bed) measure(ctx context.Context, b *bar.Bar, must, aim float64) error {
	for _, c := range contests {
		ratios := map[int][]float64{}
		var toBenchmark, allocs []float64
		bare, closeBare, err := t.bare(c)
		if err != nil {
			return err
		}
		check, closeCheck, err := t.check(c.limit)
		if err != nil {
			return err
		}
		for round := range *rounds {
			best, err := t.redisBenchmark(ctx, c)
			if err != nil {
				return err
			}
			for _, callers := range callerCounts {
				rates, err := alternate(ctx, callers, t.servers, map[string]load.Op{"bare": bare, "check": check})
				if err != nil {
					return fmt.Errorf("%s: %w", c.name, err)
				}
				ours := rates["check"]
				ratios[callers] = append(ratios[callers], ours.Rate()/rates["bare"].Rate())
				allocs = append(allocs, ours.AllocsPerOp())
				if best > 0 {
					toBenchmark = append(toBenchmark, ours.Rate()/best)
				}
				b.Say("%-7s %-14s round %d, %3d callers: Check %.0f/s (client %.1f, Redis %.1f µs CPU), bare %.0f/s (%.1f, %.1f), redis-benchmark %.0f/s",
					t.name, c.name, round+1, callers, ours.Rate(), ours.ClientMicros(), ours.RedisMicros(),
					rates["bare"].Rate(), rates["bare"].ClientMicros(), rates["bare"].RedisMicros(), best)
			}
		}
		closeBare()
		closeCheck()
		for _, callers := range callerCounts {
			b.AtLeast(fmt.Sprintf("%s %s, Check : bare at %d callers", t.name, c.name, callers), bar.Median(ratios[callers]), must, aim)
		}
		if len(toBenchmark) > 0 {
			b.AimedAtLeast(fmt.Sprintf("%s %s, Check : redis-benchmark", t.name, c.name), bar.Median(toBenchmark), 1)
		}
		b.AimedAtMost(fmt.Sprintf("%s %s, allocations per check", t.name, c.name), bar.Median(allocs), 0)
	}
	return nil
}

// alternate gives each contestant several short turns in random order, so that a busy moment of the machine hits all.
func alternate(ctx context.Context, callers int, servers []*testredis.Server, ops map[string]load.Op) (map[string]load.Result, error) {
	sums := map[string]load.Result{}
	names := slices.Sorted(maps.Keys(ops))
	for range turns {
		for _, i := range rand.Perm(len(names)) {
			r, err := load.Run(ctx, callers, *runTime/turns, servers, ops[names[i]])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", names[i], err)
			}
			sums[names[i]] = sums[names[i]].Plus(r)
		}
	}
	return sums, nil
}

const turns = 4

// lone compares one caller's p95 with a bare EVALSHA's, interleaved.
func (t *bed) lone(ctx context.Context, b *bar.Bar) error {
	for _, c := range contests {
		bare, closeBare, err := t.bare(c)
		if err != nil {
			return err
		}
		check, closeCheck, err := t.check(c.limit)
		if err != nil {
			return err
		}
		var ratios []float64
		for range 2 * *rounds {
			var p95 [2]time.Duration
			for _, i := range rand.Perm(2) {
				times, err := load.Latencies(ctx, 2000, []load.Op{bare, check}[i])
				if err != nil {
					return err
				}
				p95[i] = times[len(times)*95/100]
			}
			ratios = append(ratios, float64(p95[1])/float64(p95[0]))
		}
		closeBare()
		closeCheck()
		b.AtMost(c.name+", lone caller's p95, Check : bare EVALSHA", bar.Median(ratios), 1.5, 1.5)
	}
	return nil
}

// bare loops EVALSHA through rueidis with everything prepared: keys, arguments, the loaded script.
func (t *bed) bare(c contest) (load.Op, func(), error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: t.addrs, DisableCache: true, ForceSingleClient: !t.cluster})
	if err != nil {
		return nil, nil, err
	}
	sha, err := t.loadScript(c.script)
	if err != nil {
		return nil, nil, err
	}
	keys := make([]string, users)
	for i := range keys {
		keys[i] = fmt.Sprintf("b:{%016d}%.4s", i, c.name)
	}
	op := func(ctx context.Context, _ int, _ int64) error {
		key := keys[rand.IntN(users)]
		room, err := client.Do(ctx, client.B().Evalsha().Sha1(sha).Numkeys(1).Key(key).Arg(c.args...).Build()).AsInt64()
		if err == nil && room < 0 {
			err = errors.New("the bare script refused, it was meant to admit everything")
		}
		return err
	}
	return op, client.Close, nil
}

// check asks a Limiter with 1,000 rules, one of which applies.
func (t *bed) check(limit sluice.Limit) (load.Op, func(), error) {
	conn, err := rueidisconn.New(rueidisconn.Options{Addrs: t.addrs, Cluster: t.cluster})
	if err != nil {
		return nil, nil, err
	}
	rules, faults := sluice.Compile(thousandRules(limit))
	if len(faults) > 0 {
		return nil, nil, faults[0]
	}
	// The callers saturate both cores, so a decision waits longer than its usual deadline.
	limiter := sluice.New(redisstore.New(conn, redisstore.Options{}), rules, sluice.Options{Timeout: 5 * time.Second})
	names := make([]string, users)
	for i := range names {
		names[i] = fmt.Sprintf("user-%08d", i)
	}
	op := func(ctx context.Context, _ int, _ int64) error {
		d, err := limiter.Check(ctx, sluice.Request{Subject: sluice.Subject{User: names[rand.IntN(users)]}, Route: "/api/items/42", Method: "GET"})
		switch {
		case err != nil:
			return err
		case d.StoreErr != nil:
			return d.StoreErr
		case !d.Allowed || d.Mode != sluice.Exact || len(d.Results()) != 1:
			return errors.New("got " + d.Reason() + ", want an exact decision by one limit")
		}
		return nil
	}
	return op, conn.Close, nil
}

func thousandRules(limit sluice.Limit) []sluice.Rule {
	rules := []sluice.Rule{{
		Name: "items", Key: []sluice.Dimension{sluice.User}, Limits: []sluice.Limit{limit},
		Match: sluice.Match{Routes: []string{"/api/items/{id}"}, Methods: []string{"GET"}},
	}}
	for i := len(rules); i < 1000; i++ {
		rules = append(rules, sluice.Rule{
			Name: fmt.Sprintf("other-%d", i), Key: []sluice.Dimension{sluice.User}, Limits: []sluice.Limit{limit},
			Match: sluice.Match{Routes: []string{fmt.Sprintf("/api/other-%d/{id}", i)}, Tiers: []string{"free", "pro"}},
		})
	}
	return rules
}

func (t *bed) loadScript(text string) (sha string, err error) {
	for _, s := range t.servers {
		reply, err := s.Do("SCRIPT", "LOAD", text)
		if err != nil {
			return "", err
		}
		sha, _ = reply.(string)
	}
	return sha, nil
}

// redisBenchmark returns redis-benchmark's best pipelined rate for the bare script; 0 on a cluster, which it cannot
// drive with keys of its own choice.
func (t *bed) redisBenchmark(ctx context.Context, c contest) (float64, error) {
	if t.cluster {
		return 0, nil
	}
	sha, err := t.loadScript(c.script)
	if err != nil {
		return 0, err
	}
	best := 0.0
	for _, depth := range []int{32, 64} {
		args := []string{
			"-p", strconv.Itoa(t.servers[0].Port()), "-c", "50", "-P", strconv.Itoa(depth), "-n", "50000", "-r", strconv.Itoa(users), "--csv",
			"EVALSHA", sha, "1", "r:{0000__rand_int__}" + c.name[:4],
		}
		out, err := exec.CommandContext(ctx, "redis-benchmark", append(args, c.args...)...).Output()
		if err != nil {
			return 0, fmt.Errorf("redis-benchmark: %w", err)
		}
		rows, err := csv.NewReader(strings.NewReader(string(out))).ReadAll()
		if err != nil || len(rows) != 2 || len(rows[1]) < 2 {
			return 0, fmt.Errorf("redis-benchmark printed %q (%v)", out, err) //nolint:errorlint // may be nil
		}
		rate, err := strconv.ParseFloat(rows[1][1], 64)
		if err != nil {
			return 0, err
		}
		best = max(best, rate)
	}
	return best, nil
}
