// Command gateway is make bar-gateway: what limits cost. The gateway, which asks a real Redis about every request, and a
// bare httputil.ReverseProxy with the same transport take turns in front of the same upstream. At one connection the time
// that the gateway adds is held against bare Redis round trips, at 64 connections its throughput against the bare proxy's.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/bench/internal/load"
	"github.com/sluicehq/sluice/internal/testredis"
)

var (
	profile = flag.String("profile", "", "a file for a CPU profile of the gateway")
	rounds  = flag.Int("rounds", 5, "how often each is measured")
	runTime = flag.Duration("time", 2*time.Second, "how long each throughput run of a round takes")
)

const (
	loneBlocks  = 40 // per round
	blockSize   = 50 // requests of each contestant in a block
	connections = 64
	turns       = 4 // in which a run is cut, so that a busy moment of the machine hits both
)

func main() {
	job := flag.String("worker", "", "one process's part as JSON; the bar starts its own workers with it")
	b := bar.New("bar-gateway")
	if *job != "" {
		if err := serve(*job); err != nil {
			b.Fatal(err)
		}
		return
	}
	program := testredis.Program()
	if err := measure(context.Background(), program, b); err != nil {
		program.Close()
		b.Fatal(err)
	}
	program.Close()
	b.End()
}

func measure(ctx context.Context, program *testredis.Main, b *bar.Bar) error {
	t, err := newBed(program)
	if err != nil {
		return err
	}
	if err := t.lone(ctx, b); err != nil {
		return fmt.Errorf("one connection: %w", err)
	}
	if err := t.crowd(ctx, b); err != nil {
		return fmt.Errorf("%d connections: %w", connections, err)
	}
	n, err := t.worker.end()
	if err != nil {
		return fmt.Errorf("ask the gateway for its counts: %w", err)
	}
	b.Shown("decisions", float64(n.All))
	b.AtLeast("share of decisions that were exact", float64(n.Exact)/float64(max(n.All, 1)), 0.999, 1)
	return nil
}

// lone compares the time a single client waits. A round trip is one call of the cheapest script. One that follows a round trip finds everything awake; in the
// gateway it follows other work. So it is measured in that rhythm, too, after a request through the bare proxy each time.
func (t *bed) lone(ctx context.Context, b *bar.Bar) error {
	bare := t.bare.op(1)
	contests := []contest{
		{"bare proxy", nil, bare},
		{"gateway", nil, t.gateway.op(1)},
		{"Redis round trip", bare, t.roundTrip},
		{"Redis round trips in a row", nil, t.roundTrip},
		{"GET by Redis", bare, t.get},
		{"Limiter.Check", bare, t.check},
	}
	times := make([][]float64, len(contests))
	for round := range *rounds + 1 {
		p50, err := alternate(ctx, contests)
		if err != nil {
			return err
		}
		if round == 0 {
			continue // to warm up
		}
		b.Say("round %d, 1 connection, p50 in µs: bare proxy %.1f, gateway %.1f, Redis round trip %.1f", round, p50[0], p50[1], p50[2])
		for i := range contests {
			times[i] = append(times[i], p50[i])
		}
	}
	for i, c := range contests {
		b.Shown("p50 at 1 connection, µs, "+c.name, bar.Median(times[i]))
	}
	var ratios, inARow []float64
	for r := range times[0] {
		added := times[1][r] - times[0][r]
		ratios, inARow = append(ratios, added/times[2][r]), append(inARow, added/times[3][r])
	}
	b.AtMost("added p50 at 1 connection : Redis round trip", bar.Median(ratios), 2, 2)
	b.Shown("added p50 at 1 connection : Redis round trips in a row", bar.Median(inARow))
	return nil
}

// contest is an operation to time, and one to do before it each time.
type contest struct {
	name       string
	before, op load.Op
}

// alternate times all contests in short blocks, in random order, so that a busy moment of the machine hits all. It returns the
// median of each, in microseconds.
func alternate(ctx context.Context, contests []contest) ([]float64, error) {
	times := make([][]float64, len(contests))
	for range loneBlocks {
		for _, i := range rand.Perm(len(contests)) {
			for n := range int64(blockSize) {
				took, err := contests[i].time(ctx, n)
				if err != nil {
					return nil, err
				}
				times[i] = append(times[i], took)
			}
		}
	}
	p50 := make([]float64, len(contests))
	for i := range times {
		p50[i] = bar.Median(times[i])
	}
	return p50, nil
}

func (c contest) time(ctx context.Context, n int64) (float64, error) {
	if c.before != nil {
		if err := c.before(ctx, 0, n); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	err := c.op(ctx, 0, n)
	return float64(time.Since(began).Nanoseconds()) / 1000, err
}

// crowd compares throughput.
func (t *bed) crowd(ctx context.Context, b *bar.Bar) error {
	ops := []load.Op{t.bare.op(connections), t.gateway.op(connections)}
	var ratios []float64
	for round := range *rounds {
		var sums [2]load.Result
		for range turns {
			for _, i := range rand.Perm(len(ops)) {
				r, err := load.Run(ctx, connections, *runTime/turns, []*testredis.Server{t.redis}, ops[i])
				if err != nil {
					return err
				}
				sums[i] = sums[i].Plus(r)
			}
		}
		b.Say("round %d, %d connections: bare proxy %.0f/s, gateway %.0f/s (Redis %.1f µs CPU)", round+1, connections,
			sums[0].Rate(), sums[1].Rate(), sums[1].RedisMicros())
		ratios = append(ratios, sums[1].Rate()/sums[0].Rate())
	}
	b.AtLeast(fmt.Sprintf("throughput at %d connections, gateway : bare proxy", connections), bar.Median(ratios), 0.60, 0.75)
	return nil
}
