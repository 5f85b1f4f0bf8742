package main

import (
	"fmt"
	"math/big"

	"github.com/sluicehq/sluice"
)

// bucket is what is driven: it takes cost at a time and tells the wait, in microseconds, when it refuses.
type bucket interface {
	take(limit sluice.Limit, us, cost int64) (allowed bool, wait int64, err error)
}

// maxSimulated is 50 years in microseconds: the clock must stay below 2^53.
const maxSimulated = 50 * 365 * 86_400_000_000

// drive takes as often as the bucket lets it: until it refuses, then again after the wait it was told.
func drive(b bucket, c testCase, takes int) (tally, error) {
	t := tally{cases: 1}
	limit, us := c.limit, c.start.UnixMicro()
	j := newJudge(limit, us)
	for i := 0; i < takes && us-c.start.UnixMicro() < maxSimulated; i++ {
		if c.changed != nil && limit != *c.changed && (i == takes/2 || us-c.start.UnixMicro() > maxSimulated/2) {
			t.judge(j, c)
			limit = *c.changed
			j = newJudge(limit, us)
			j.indebted = true
		}
		allowed, wait, err := b.take(limit, us, c.cost)
		if err == nil && !allowed {
			j.refused(us)
			us += wait
			allowed, _, err = b.take(limit, us, c.cost) // it must admit at the instant it named
		}
		if err != nil {
			return t, err
		}
		if !allowed {
			return t, fmt.Errorf("refused again at the instant it named, after %d µs", wait)
		}
		t.admissions++
		j.admit(us, c.cost)
	}
	t.judge(j, c)
	return t, nil
}

// judge computes exactly what a bucket may admit: level is what would be missing in an ideal one, in units × window, so
// that every number is whole. In any interval of length t at most burst + t·n/W pass, or level exceeds burst·W.
type judge struct {
	n, window, burst int64
	from, last       int64
	level            *big.Int
	over             int64
	requests, cost   int64
	// indebted: after a change of limit the bucket owes what it admitted before. Admitting is judged as if it were full;
	// what it falls short of only from the first admission on, when it is empty by its own measure.
	indebted bool
	// short and ideal are those of the last refusal: what an ideal bucket would have admitted beyond, of how much.
	short, ideal int64
}

func newJudge(l sluice.Limit, us int64) *judge {
	return &judge{n: l.Limit, window: l.Window.Microseconds(), burst: l.Capacity(), from: us, last: us, level: new(big.Int)}
}

func (j *judge) admit(us, cost int64) {
	if j.level.Sub(j.level, product(j.n, us-j.last)); j.level.Sign() < 0 {
		j.level.SetInt64(0)
	}
	j.last = us
	j.level.Add(j.level, product(cost, j.window))
	if j.level.Cmp(product(j.burst, j.window)) > 0 {
		j.over++
	}
	j.cost = cost
	if j.indebted && j.requests == 0 {
		j.from = us
	}
	j.requests++
}

// refused notes how many whole requests an ideal bucket would have admitted by now: out of burst + elapsed·n/W, or of
// elapsed·n/W beyond the first where it began empty.
func (j *judge) refused(us int64) {
	if j.requests == 0 {
		return
	}
	ideal := product(j.n, us-j.from)
	if j.indebted {
		ideal.Add(ideal, product(j.cost, j.window))
	} else {
		ideal.Add(ideal, product(j.burst, j.window))
	}
	j.ideal = ideal.Div(ideal, product(j.window, j.cost)).Int64()
	j.short = j.ideal - j.requests
}

func product(a, b int64) *big.Int { return new(big.Int).Mul(big.NewInt(a), big.NewInt(b)) }

// judge adds a bucket's verdict to the tally.
func (t *tally) judge(j *judge, c testCase) {
	t.above += j.over
	if j.short > 0 {
		if share := float64(j.short) / float64(j.ideal); share > t.below {
			t.below, t.worst = share, c.String()
		}
	}
}
