package main

import (
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
)

type rate struct {
	n      int64
	window time.Duration
}

const day = 24 * time.Hour

// rates to hold. The odd ones are no whole number of ticks per unit.
var rates = []rate{
	{1, day},
	{1000, day},
	{1, time.Hour},
	{333, time.Minute},
	{1, time.Second},
	{7, time.Second},
	{100, time.Second},
	{999, time.Second},
	{3333, time.Second},
	{8000, time.Second},
	{65_537, time.Second},
	{100_000, time.Second},
	{333_333, time.Second},
	{999_983, time.Second},
	{1_000_000, time.Second},
	{2_500_001, time.Second},
	{4_999_999, time.Second},
	{5_000_000, time.Second},
	{499_999, 100 * time.Millisecond},
}

// testCase is a limit driven with one cost from one instant; with changed set, by another limit from half-way on.
type testCase struct {
	limit   sluice.Limit
	changed *sluice.Limit
	cost    int64
	start   time.Time
}

func (c testCase) String() string {
	s := fmt.Sprintf("%s, cost %d, from %s", c.limit, c.cost, c.start.Format(time.RFC3339))
	if c.changed != nil {
		s += fmt.Sprintf(", then %s", c.changed)
	}
	return s
}

// cases combines every rate with several costs, bursts and instants, one of them just before the ring's edge.
func cases() []testCase {
	starts := []time.Time{
		time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		time.UnixMicro(1633<<40 - 777_777),
	}
	var all []testCase
	for _, r := range rates {
		perMicro := (r.n + r.window.Microseconds() - 1) / r.window.Microseconds() // what refills between two ticks of the clock
		for _, cost := range []int64{1, 3, 100} {
			for _, burst := range []int64{cost + perMicro, 7*cost + perMicro, r.n + cost + perMicro} {
				for _, start := range starts {
					c := testCase{limit: sluice.Bucket(r.n, r.window, burst), cost: cost, start: start}
					if c.limit.Validate() != nil {
						continue // a hundred days of burst at a rate that is too high for it
					}
					all = append(all, c)
				}
			}
		}
		slower := sluice.Bucket(max(r.n/3, 1), r.window, 10+perMicro)
		faster := sluice.Bucket(r.n, r.window, 10+perMicro)
		all = append(all,
			testCase{limit: faster, changed: &slower, cost: 1, start: starts[0]},
			testCase{limit: slower, changed: &faster, cost: 1, start: starts[1]})
	}
	return all
}
