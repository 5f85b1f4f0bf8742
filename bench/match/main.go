// Command match is make bar-match: it holds the rule index to its promises. It finds what a scan of all rules finds,
// allocates nothing, and takes about as long for a thousand rules as for ten of the same shape.
package main

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/bench/internal/bar"
)

const (
	many, few = 1000, 10
	verified  = 30_000 // requests compared with the scan
	timed     = 1024   // requests of a timed pass: few enough to stay in the cache, so that the index is what is measured
	passes    = 2      // passes over them in one round, for each set: short, so that a noisy neighbour meets both
	rounds    = 501
)

func main() {
	b := bar.New("bar-match")
	rng := rand.New(rand.NewPCG(2026, 11)) // fixed, so that two runs measure the same
	large, small := newWorld(many), newWorld(few)
	for _, w := range []*world{large, small} {
		if err := w.compile(); err != nil {
			b.Fatal(err)
		}
	}
	b.Say("comparing %d requests with a scan", verified)
	largeSeen, smallSeen := large.compare(rng, verified), small.compare(rng, verified)
	for _, problem := range append(largeSeen.problems, smallSeen.problems...) {
		b.Say("%s", problem)
	}
	b.Exactly("rules", int64(large.set.Len()), many)
	b.Exactly("CIDRs", int64(large.cidrs()), 200)
	b.Exactly("layers", int64(large.layers()), 4)
	b.Exactly("fewest layers of a matching request", int64(min(largeSeen.fewest, smallSeen.fewest)), 3)
	b.Exactly("requests of 30,000 matching none", int64(largeSeen.none), verified/10)
	b.Exactly("the same of 10 rules", int64(smallSeen.none), verified/10)
	b.Exactly("different from a scan", int64(largeSeen.different+smallSeen.different), 0)

	b.Say("timing %d rounds", rounds)
	requests := map[*world][]sluice.Request{large: large.requests(rng, timed), small: small.requests(rng, timed)}
	b.Exactly("allocations in 1,024 matches", allocations(large.set, requests[large]), 0)
	var times [2][]float64
	var ratios []float64
	for round := range rounds {
		// The order alternates, so that neither set always finds the cache as the other left it.
		var l, s float64
		if round%2 == 0 {
			l, s = perMatch(large.set, requests[large]), perMatch(small.set, requests[small])
		} else {
			s, l = perMatch(small.set, requests[small]), perMatch(large.set, requests[large])
		}
		times[0], times[1], ratios = append(times[0], l), append(times[1], s), append(ratios, l/s)
	}
	b.AimedAtMost("ns per match of 1,000 rules", bar.Median(times[0]), 2000)
	b.AimedAtMost("ns per match of 10 rules", bar.Median(times[1]), 2000)
	b.AtMost("1,000 rules : 10 rules", bar.Median(ratios), 1.5, 1.5)
	b.End()
}

// perMatch returns the nanoseconds of a match.
func perMatch(set *sluice.RuleSet, requests []sluice.Request) float64 {
	dst := make([]sluice.Matched, 0, 8)
	start := time.Now()
	for range passes {
		for i := range requests {
			dst = set.Match(dst[:0], &requests[i])
		}
	}
	return float64(time.Since(start).Nanoseconds()) / float64(passes*len(requests))
}

// allocations counts those of one pass, after another has warmed up.
func allocations(set *sluice.RuleSet, requests []sluice.Request) int64 {
	dst := make([]sluice.Matched, 0, 8)
	return int64(testing.AllocsPerRun(1, func() {
		for i := range requests {
			dst = set.Match(dst[:0], &requests[i])
		}
	}))
}

// seen is what a comparison found.
type seen struct {
	fewest    int // layers of a request that matched at all
	none      int
	different int
	problems  []string // the first few differences
}

// compare asks the index and the scan the same.
func (w *world) compare(rng *rand.Rand, n int) seen {
	s := seen{fewest: 99}
	var dst []sluice.Matched
	for _, req := range w.requests(rng, n) {
		dst = w.set.Match(dst[:0], &req)
		if len(dst) == 0 {
			s.none++
		} else {
			s.fewest = min(s.fewest, len(dst))
		}
		want := scan(w.rules, &req)
		if got := found(dst); !equal(got, want) {
			if s.different++; s.different <= 3 {
				s.problems = append(s.problems, fmt.Sprintf("%+v: got %v, want %v", req, got, want))
			}
		}
	}
	return s
}
