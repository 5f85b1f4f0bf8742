package algo

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// pendingTake is a charge that will be given back because another limit refused.
type pendingTake struct{ us, cost int64 }

// bucketBeside is a bucket that sees refused takes and their give-backs, beside one that never saw them.
type bucketBeside struct {
	plan    Plan
	real    stored
	without int64 // the debt had the refused takes not happened, in ticks
	us      int64
	pending []pendingTake
	given   int64
}

// pass lets time pass.
func (b *bucketBeside) pass(us int64) {
	b.us += us
	b.without = max(b.without-us*b.plan.ticks(), 0)
}

func (b *bucketBeside) debt() int64 {
	if !b.real.has {
		return 0
	}
	debt, _ := b.plan.debt(b.real.value, b.us)
	return max(debt, 0)
}

// TestGive_NeverLeavesABucketFuller is the proof of docs/decisions/give-back.md on 20,000 random traces: whatever the
// order of takes and give-backs, the debt is never below that of the trace without the refused takes. Were the whole
// cost forgiven, 38 % of these traces would fail.
func TestGive_NeverLeavesABucketFuller(t *testing.T) {
	t.Parallel()
	const traces = 20_000
	var given, charged int64
	for seed := range uint64(traces) {
		rng := rand.New(rand.NewPCG(seed, 4))
		plans := []Plan{NewTokenBucket(10, second, 20, 0), NewTokenBucket(7, second, 3, 0), NewTokenBucket(100, day, 1000, 0), NewTokenBucket(999_983, second, 40, second/2)}
		b := bucketBeside{plan: plans[rng.IntN(len(plans))]}
		b.us = ringEdge - rng.Int64N(b.plan.micros(b.plan.Limit)+1)
		for step := range 40 {
			b.step(rng, &charged)
			if got := b.debt(); got < b.without {
				t.Fatalf("seed %d, step %d, %+v: got a debt of %d ticks, want at least %d, as without the refused takes", seed, step, b.plan, got, b.without)
			}
		}
		given += b.given
	}
	if given == 0 || charged == 0 {
		t.Fatalf("nothing was given back (%d of %d): the traces prove nothing", given, charged)
	}
	t.Logf("%.0f %% of what was refused came back", 100*float64(given)/float64(charged))
}

func (b *bucketBeside) step(rng *rand.Rand, charged *int64) {
	unit := b.plan.micros(b.plan.perUnit)
	switch rng.IntN(4) {
	case 0: // time passes: an instant, a unit, a refill
		b.pass(rng.Int64N([]int64{1, 2*unit + 1, b.plan.micros(b.plan.Limit) + 1}[rng.IntN(3)] + 1))
	case 1: // a take that stays
		cost := b.plan.Cost(rng.Int64N(5))
		if b.real.takeForever(&b.plan, b.us, cost) >= 0 {
			b.without += cost
		}
	case 2: // a take that another limit refuses
		cost := b.plan.Cost(rng.Int64N(5))
		if b.real.takeForever(&b.plan, b.us, cost) >= 0 {
			b.pending = append(b.pending, pendingTake{b.us, cost})
			*charged += cost
		}
	default: // any of those is given back
		if len(b.pending) == 0 {
			return
		}
		i := rng.IntN(len(b.pending))
		p := b.pending[i]
		b.pending = slices.Delete(b.pending, i, i+1)
		b.real.expires = b.us
		b.given += b.real.give(&b.plan, b.us, p.us, p.cost)
	}
}

// Windows know what they took: given back in whatever order and however late, it is as if it had not been taken. A
// give-back after its window has left the count changes nothing, also eight windows later, when the number is the same.
func TestGive_IsExactForWindows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plan    func(limit, window int64) Plan
		sliding bool
	}{"fixed": {NewFixedWindow, false}, "sliding": {NewSlidingWindow, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				window := someWindows.Draw(t, "window")
				p := c.plan(1000, window)
				m, s := newWindowModel(window), &stored{}
				us := someday
				var pending []pendingTake
				for range 60 {
					us = drawTime(t, us, window, 0)
					if i := rapid.IntRange(-3, len(pending)-1).Draw(t, "give"); i >= 0 {
						q := pending[i]
						pending = slices.Delete(pending, i, i+1)
						s.give(&p, us, q.us, q.cost)
						m.counts[q.us/m.tick/m.length] -= q.cost
					} else if cost := rapid.Int64Range(1, 9).Draw(t, "cost"); s.take(&p, us, cost) >= 0 {
						m.charge(us, cost)
						pending = append(pending, pendingTake{us, cost})
					}
					got, want := p.Answer(p.Take(s.value, s.has, us, 0).Reply, 0, us).Remaining, floor(m.room(us, p.Limit, c.sliding))
					if s.expire(us); s.has && got != want {
						t.Fatalf("at %d with counts %v: got %d remaining, want %d", us, m.counts, got, want)
					}
				}
			})
		})
	}
}

func TestGive_BeforeItsTakeOrInAnotherUnitChangesNothing(t *testing.T) {
	t.Parallel()
	fine, long := NewTokenBucket(7, day, 20, 0), NewTokenBucket(7, day, 7000, 0)
	for _, p := range []Plan{NewFixedWindow(10, second), NewSlidingWindow(10, second), fine, long} {
		v := p.Take(0, false, someday, p.Cost(5)).Next
		if next, credit := p.Give(v, someday-1, someday, p.Cost(5)); next != v || credit != 0 {
			t.Errorf("kind %c, given back a microsecond before its take: got %d back, want 0", p.Kind, credit)
		}
	}
	v := fine.Take(0, false, someday, fine.Cost(5)).Next
	if next, credit := long.Give(v, someday, someday, long.Cost(5)); next != v || credit != 0 {
		t.Errorf("a fine debt given back in long ticks: got %d back, want 0", credit)
	}
	v = long.Take(0, false, someday, long.Cost(5)).Next
	if next, credit := fine.Give(v, someday, someday, fine.Cost(5)); next != v || credit != 0 {
		t.Errorf("a long debt given back in fine ticks: got %d back, want 0", credit)
	}
}

func TestGive_TwiceTakesOffNoMoreThanThereIs(t *testing.T) {
	t.Parallel()
	for _, p := range []Plan{NewFixedWindow(10, second), NewSlidingWindow(10, second), NewTokenBucket(10, second, 10, 0)} {
		v := p.Take(0, false, someday, p.Cost(5)).Next
		for range 3 {
			v, _ = p.Give(v, someday, someday, p.Cost(5))
		}
		if got := p.Answer(p.Take(v, true, someday, 0).Reply, 0, someday).Remaining; got != 10 {
			t.Errorf("kind %c: got %d remaining, want 10", p.Kind, got)
		}
	}
}
