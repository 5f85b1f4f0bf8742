// Command grpc is make bar-grpc: decisions per second and CPU per decision of a node's gRPC doors against the reference
// rate limit service in its best configuration, and against a handler that does nothing. One load generator asks all of
// them in turn, on the same Redis.
package main

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testredis"
)

const (
	span = 1500 * time.Millisecond // of one run
	warm = 300 * time.Millisecond  // of each run, not counted
)

// callerCounts are those of the closed loop.
var callerCounts = []int{64, 256}

func main() {
	rounds := flag.Int("rounds", 6, "how often everything is measured; figures are medians")
	only := flag.String("only", "", "measure the forms whose name contains this, and compare nothing")
	b := bar.New("bar-grpc")
	main := testredis.Program()
	defer main.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Minute)
	defer cancel()

	redis := testredis.Single(main, testredis.Options{Config: []string{"--save", "", "--appendonly", "no"}})
	servers, err := startServers(ctx, main, redis)
	if err != nil {
		b.Fatal(err)
	}
	if *only != "" {
		b.Say("profiles: go tool pprof -H 'Authorization: Bearer %s' http://%s/debug/pprof/profile?seconds=5", testnode.AdminToken, servers.node.Admin)
	}
	var cells []*cell
	for _, callers := range callerCounts {
		for _, f := range servers.forms() {
			if !strings.Contains(f.name, *only) {
				continue
			}
			cells = append(cells, &cell{form: f, callers: callers})
		}
	}
	for round := range *rounds {
		b.Say("round %d of %d", round+1, *rounds)
		for _, c := range cells {
			if err := c.run(ctx); err != nil {
				b.Fatal(fmt.Errorf("%s, %d callers: %w", c.form.name, c.callers, err))
			}
		}
	}
	say(b, cells)
	if *only != "" {
		return
	}
	report(b, cells)
	share, total, err := servers.exactShare(ctx)
	if err != nil {
		b.Fatal(err)
	}
	b.Shown("decisions counted", total)
	b.AtLeast("share of them exact", share, 0.999, 1)
	b.End()
}

// cell is one form at one number of callers, and what its rounds measured.
type cell struct {
	form    *form
	callers int
	rates   []float64       // decisions per second, by round
	cpu     []time.Duration // of the server per decision, by round
	redis   []time.Duration // of Redis, likewise
	own     []time.Duration // of this process, likewise
}

func (c *cell) run(ctx context.Context) error {
	r, err := c.form.load(ctx, c.callers)
	if err != nil {
		return err
	}
	c.rates = append(c.rates, float64(r.decisions)/r.elapsed.Seconds())
	n := time.Duration(max(r.decisions, 1))
	c.cpu, c.redis, c.own = append(c.cpu, r.cpu/n), append(c.redis, r.redis/n), append(c.own, r.own/n)
	return nil
}

// say tells what was measured.
func say(b *bar.Bar, cells []*cell) {
	for _, c := range cells {
		b.Say("%4d callers  %-28s %8.0f/s  %6.1f µs server CPU, %5.1f Redis, %5.1f generator", c.callers, c.form.name, bar.Median(c.rates), micros(c.cpu), micros(c.redis), micros(c.own))
	}
}

// report compares within each round, so that a slow minute of the machine slows both sides, and takes the median.
func report(b *bar.Bar, cells []*cell) {
	find := func(callers int, names ...string) []*cell {
		var found []*cell
		for _, c := range cells {
			for _, name := range names {
				if c.callers == callers && c.form.name == name {
					found = append(found, c)
				}
			}
		}
		return found
	}
	for _, callers := range callerCounts {
		what := func(s string) string { return fmt.Sprintf("%d callers: %s", callers, s) }
		ours, empty := find(callers, unaryOurs)[0], find(callers, unaryEmpty)[0]
		rival := best(find(callers, unaryReference, unaryReferencePool))
		rival10 := best(find(callers, tenReference, tenReferencePool))
		b.AtLeast(what("unary : reference"), ratio(ours, rival), 1.1, 1.5)
		b.AtMost(what("server CPU : reference's"), micros(ours.cpu)/micros(rival.cpu), 0.75, 0.5)
		b.AtLeast(what("unary : empty handler"), ratio(ours, empty), 0.5, 0.7)
		b.AtLeast(what("stream : reference's unary"), ratio(find(callers, streamOurs)[0], rival), 1.6, 2.5)
		b.AtLeast(what("10 a message : reference's 10 descriptors"), ratio(best(find(callers, tenOurs, tenRLS)), rival10), 1.2, 2)
		b.AtLeast(what("10 a message by stream : the same"), ratio(find(callers, tenStreamOurs)[0], rival10), 1.6, 2)
	}
}

// best is the configuration with the higher median rate.
func best(cells []*cell) *cell {
	winner := cells[0]
	for _, c := range cells[1:] {
		if bar.Median(c.rates) > bar.Median(winner.rates) {
			winner = c
		}
	}
	return winner
}

func ratio(a, b *cell) float64 {
	ratios := make([]float64, len(a.rates))
	for i := range ratios {
		ratios[i] = a.rates[i] / b.rates[i]
	}
	return bar.Median(ratios)
}

func micros(cpu []time.Duration) float64 {
	values := make([]float64, len(cpu))
	for i, d := range cpu {
		values[i] = float64(d.Nanoseconds()) / 1000
	}
	return bar.Median(values)
}
