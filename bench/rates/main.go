// Command rates drives token buckets from 1 per day to 5,000,000 per second as hard as they let it, on a simulated clock,
// and compares what they admit with exact arithmetic: never above burst + rate × time in any interval, at most 0.1 %
// below. The Go arithmetic is driven long, the Lua on a real Redis with a movable clock shorter.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"

	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

var (
	twinTakes = flag.Int("twin", 15_000, "admissions per case of the Go arithmetic")
	luaTakes  = flag.Int("lua", 1_200, "admissions per case of the Lua, which gets every other case")
)

func main() {
	b := bar.New("bar-rates")
	program := testredis.Program()
	defer program.Close()
	server := testredis.Single(program, testredis.Options{MovableClock: true})
	conn, err := rueidisconn.Open("redis://" + server.Addr())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	store := redisstore.New(conn, redisstore.Options{})

	for _, side := range []struct {
		name  string
		takes int
		every int
		open  func(c testCase) bucket
	}{
		{"twin", *twinTakes, 1, func(testCase) bucket { return &twin{} }},
		{"Lua", *luaTakes, 2, func(c testCase) bucket {
			return &lua{store: store, clock: server.Clock(), name: c.String(), ctx: context.Background()}
		}},
	} {
		var total tally
		for i, c := range cases() {
			takes := side.takes
			if c.changed != nil {
				takes *= 4 // each half has a limit of its own, and one request must weigh less than 0.1 %
			} else if (i+i/2)%side.every != 0 { // both instants in turn
				continue
			}
			t, err := drive(side.open(c), c, takes)
			if err != nil {
				b.Fatal(fmt.Errorf("%s, %s: %w", side.name, c, err))
			}
			total.add(t)
			if i%50 == 49 {
				b.Say("%s: %d cases, worst %.4f %% below (%s)", side.name, i+1, 100*total.below, total.worst)
			}
		}
		b.Shown(side.name+" cases", float64(total.cases))
		b.Shown(side.name+" admissions", float64(total.admissions))
		b.Exactly(side.name+" above the limit", total.above, 0)
		b.AtMost(side.name+" worst % below", roundUp(100*total.below), 0.1, 0.1)
	}
	b.AtLeast("rates", float64(len(rates)), 16, 16)
	b.End()
}

func roundUp(percent float64) float64 { return math.Ceil(percent*10_000) / 10_000 }

// tally sums up cases.
type tally struct {
	cases, admissions, above int64
	below                    float64
	worst                    string
}

func (t *tally) add(o tally) {
	t.cases += o.cases
	t.admissions += o.admissions
	t.above += o.above
	if o.below > t.below {
		t.below, t.worst = o.below, o.worst
	}
}
