package redisstore_test

import (
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice"
)

// randomTrace is a story told to two stores: some counters, and what happens to them when.
type randomTrace struct {
	start    int64 // µs
	counters []randomCounter
	steps    []randomStep
}

// randomCounter is one key with the limits it has in the course of the trace, all of one algorithm and window.
type randomCounter struct {
	key      sluice.Key
	variants []variant
}

type variant struct {
	limit sluice.Limit
	delay time.Duration
}

type randomStep struct {
	pause  int64 // µs since the step before; negative: the clock steps back
	verb   string
	groups [][]sluice.Charge
	back   []int // give: which of the charges taken so far, counted from the latest
}

func (s randomStep) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%+dµs %s %v", s.pause, s.verb, s.back)
	for _, group := range s.groups {
		b.WriteString(" |")
		for _, c := range group {
			fmt.Fprintf(&b, " %s cost %d delay %s shadow=%v receipted=%v %s;", c.Key.Rule, c.Cost, c.MaxDelay, c.Shadow, c.Receipted, c.Limit)
		}
	}
	return b.String()
}

// starts are instants worth starting near: an ordinary one, the edges of both rings of the token bucket, and one
// where windows of many lengths begin at once.
var starts = []time.Time{
	time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	time.Date(2026, 11, 24, 5, 14, 48, 183807000, time.UTC), // a microsecond before 1633 · 2^40 µs
	time.Date(2005, 9, 5, 7, 36, 53, 685247000, time.UTC),   // a microsecond before 2 · 2^50 µs
	time.Date(2027, 3, 7, 23, 59, 59, 999999000, time.UTC),
}

// drawTrace draws a trace; with backwards its clock also steps back.
func drawTrace(t *rapid.T, backwards bool) randomTrace {
	tr := randomTrace{start: rapid.SampledFrom(starts).Draw(t, "start").UnixMicro()}
	for i := range rapid.IntRange(1, 5).Draw(t, "counters") {
		tr.counters = append(tr.counters, drawCounter(t, i))
	}
	for range rapid.IntRange(10, 60).Draw(t, "steps") {
		tr.steps = append(tr.steps, tr.drawStep(t, backwards))
	}
	return tr
}

var windows = []time.Duration{
	100 * time.Millisecond, time.Second, 7919 * time.Millisecond, time.Minute, time.Hour,
	24 * time.Hour, 25 * time.Hour, 366 * 24 * time.Hour,
}

func drawCounter(t *rapid.T, i int) randomCounter {
	user := rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "user")
	c := randomCounter{key: sluice.Key{
		Namespace: "n", Rule: fmt.Sprintf("rule-%d", i), Parts: []sluice.Part{{Dimension: sluice.User, Value: user}},
	}}
	algorithm := rapid.SampledFrom([]sluice.Algorithm{
		sluice.TokenBucket, sluice.TokenBucket, sluice.SlidingWindow, sluice.FixedWindow, sluice.SlidingLog,
	}).Draw(t, "algorithm")
	window := rapid.SampledFrom(windows).Draw(t, "window")
	for range rapid.IntRange(1, 3).Draw(t, "variants") {
		v := rapid.Custom(func(t *rapid.T) variant { return drawVariant(t, algorithm, window) }).
			Filter(func(v variant) bool { return v.limit.Validate() == nil }).Draw(t, "limit")
		c.variants = append(c.variants, v)
	}
	return c
}

func drawVariant(t *rapid.T, algorithm sluice.Algorithm, window time.Duration) variant {
	v := variant{limit: sluice.Limit{Algorithm: algorithm, Window: window}}
	small := rapid.Int64Range(1, 12)
	switch algorithm {
	case sluice.SlidingWindow:
		v.limit.Limit = rapid.OneOf(small, rapid.Int64Range(1, 5000), rapid.Just(int64(sluice.MaxWindowedLimit))).Draw(t, "n")
	case sluice.FixedWindow:
		v.limit.Limit = rapid.OneOf(small, rapid.Int64Range(1, 5000), rapid.SampledFrom([]int64{
			1<<25 - 1, 1 << 25, sluice.MaxFixedLimit,
		})).Draw(t, "n")
	case sluice.SlidingLog:
		v.limit.Limit = rapid.OneOf(small, rapid.Int64Range(1, 300)).Draw(t, "n")
	default:
		v.limit.Limit = rapid.OneOf(small, rapid.Int64Range(1, 500_000)).Draw(t, "n")
		// Few units, or so many that they take from hours to years to refill: both tick lengths, and crossing between them.
		days := int64(24 * time.Hour / window)
		v.limit.Burst = rapid.OneOf(small, rapid.Int64Range(1, max(1, 8*v.limit.Limit*max(days, 1))), rapid.Int64Range(1, 1+1000*v.limit.Limit*max(days, 1))).Draw(t, "burst")
		v.delay = rapid.SampledFrom([]time.Duration{0, 0, 500 * time.Millisecond, time.Minute}).Draw(t, "delay")
	}
	return v
}

func (tr *randomTrace) drawStep(t *rapid.T, backwards bool) randomStep {
	s := randomStep{
		pause: tr.drawPause(t, backwards),
		verb:  rapid.SampledFrom([]string{"take", "take", "take", "take", "take", "peek", "give", "give", "reset"}).Draw(t, "verb"),
	}
	if s.verb == "give" {
		s.back = rapid.SliceOfN(rapid.IntRange(0, 8), 1, 3).Draw(t, "back")
		return s
	}
	groups := 1
	if s.verb != "reset" && rapid.IntRange(0, 3).Draw(t, "several") == 0 {
		groups = rapid.IntRange(1, 4).Draw(t, "groups")
	}
	for range groups {
		s.groups = append(s.groups, tr.drawGroup(t))
	}
	return s
}

func (tr *randomTrace) drawGroup(t *rapid.T) []sluice.Charge {
	order := rapid.Permutation(tr.counters).Draw(t, "order")
	n := rapid.SampledFrom([]int{1, 1, 1, 2, 3, 4}).Draw(t, "charges")
	receipted := rapid.Bool().Draw(t, "receipted")
	var group []sluice.Charge
	for _, counter := range order[:min(n, len(order))] {
		v := rapid.SampledFrom(counter.variants).Draw(t, "variant")
		capacity := v.limit.Capacity()
		cost := rapid.OneOf(
			rapid.Just(int64(1)), rapid.Int64Range(0, 3), rapid.Int64Range(1, max(1, capacity/2)),
			rapid.SampledFrom([]int64{capacity - 1, capacity, capacity + 1, 1 << 62}),
		).Draw(t, "cost")
		group = append(group, sluice.Charge{
			Key: counter.key, Limit: v.limit, MaxDelay: v.delay, Cost: cost,
			Shadow:    rapid.IntRange(0, 4).Draw(t, "shadow") == 0,
			Receipted: receipted,
		})
	}
	return group
}

// drawPause draws the time to the next step in proportion to what some counter waits for: its window, or its refill.
func (tr *randomTrace) drawPause(t *rapid.T, backwards bool) int64 {
	limit := rapid.SampledFrom(rapid.SampledFrom(tr.counters).Draw(t, "pace").variants).Draw(t, "pace of").limit
	length := limit.Window.Microseconds()
	if limit.Algorithm == sluice.TokenBucket {
		length = max(1, rapid.SampledFrom([]int64{length / limit.Limit, length / limit.Limit * limit.Capacity()}).Draw(t, "refill"))
	}
	near := rapid.Int64Range(-2, 2)
	kinds := []*rapid.Generator[int64]{
		rapid.Just(int64(0)), rapid.Just(int64(0)),
		rapid.Int64Range(0, 3000),
		rapid.Int64Range(0, length),
		rapid.Custom(func(t *rapid.T) int64 {
			whole := length * rapid.Int64Range(1, 9).Draw(t, "windows")
			return whole + near.Draw(t, "near")*rapid.SampledFrom([]int64{1, 1000}).Draw(t, "by")
		}),
	}
	if backwards {
		kinds = append(kinds, rapid.Int64Range(-3000, 0), rapid.Int64Range(-5*length, 0), rapid.Int64Range(-10*length, 0))
	}
	pause := rapid.OneOf(kinds...).Draw(t, "pause")
	if !backwards {
		pause = max(pause, 0)
	}
	return pause
}
