package algo

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

const (
	second = int64(1_000_000) // µs
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
	year   = 366 * day

	// someday is 2026-01-01T00:00:00Z, a multiple of all windows up to a day.
	someday = int64(1767225600) * second
)

// stored keeps a value as a store does: for the plan's time to live after it was last set, in whole milliseconds.
type stored struct {
	value   int64
	has     bool
	expires int64 // ms
}

// expire drops the value when its time is over, and tells whether there was one to drop.
func (s *stored) expire(us int64) bool {
	over := s.has && us/1000 > s.expires
	if over {
		s.has = false
	}
	return over
}

// take charges the value and returns the reply.
func (s *stored) take(p *Plan, us, cost int64) int64 {
	s.expire(us)
	out := p.Take(s.value, s.has, us, cost)
	if out.Reply >= 0 {
		sameWindow := s.has && (p.Kind == FixedWindow || p.Kind == SlidingWindow) && s.value>>numberBits == out.Next>>numberBits
		if !sameWindow {
			s.expires = us/1000 + p.TTL
		}
		s.value, s.has = out.Next, true
	}
	return out.Reply
}

// give gives a charge back and returns how much of it came back.
func (s *stored) give(p *Plan, us, us0, cost int64) (credit int64) {
	s.expire(us)
	if !s.has {
		return 0
	}
	s.value, credit = p.Give(s.value, us, us0, cost)
	return credit
}

func TestWindows_AnswerWhatTheTableSays(t *testing.T) {
	t.Parallel()
	fixed, sliding := NewFixedWindow(10, 10*second), NewSlidingWindow(10, 10*second)
	huge := NewFixedWindow(MaxFixedLimit, hour)
	long := NewSlidingWindow(100, 25*hour)
	for _, c := range []struct {
		name  string
		plan  Plan
		takes [][2]int64 // µs after someday, cost; the last one is what is answered
		want  Answer
	}{
		{"fixed, first", fixed, [][2]int64{{2 * second, 1}}, Answer{Allowed: true, Remaining: 9, Reset: 8 * second}},
		{"fixed, full", fixed, [][2]int64{{0, 10}, {second, 1}}, Answer{Remaining: 0, Reset: 9 * second, Retry: 9 * second}},
		{"fixed, too much now", fixed, [][2]int64{{0, 4}, {second, 7}}, Answer{Remaining: 6, Reset: 9 * second, Retry: 9 * second}},
		{"fixed, never", fixed, [][2]int64{{0, 11}}, Answer{Remaining: 10, Reset: 10 * second, Retry: Never}},
		{"fixed, last tick", fixed, [][2]int64{{0, 10}, {9999999, 1}}, Answer{Reset: 1000, Retry: 1000}},
		{"fixed, next window", fixed, [][2]int64{{0, 10}, {10 * second, 1}}, Answer{Allowed: true, Remaining: 9, Reset: 10 * second}},
		{"fixed, no cost", fixed, [][2]int64{{0, 10}, {second, 0}}, Answer{Allowed: true, Remaining: 0, Reset: 9 * second}},
		{"fixed, largest", huge, [][2]int64{{0, MaxFixedLimit - 1}, {hour / 2, 1}}, Answer{Allowed: true, Reset: hour / 2}},
		{"fixed, beyond the largest", huge, [][2]int64{{0, MaxFixedLimit}, {hour / 2, 1}}, Answer{Reset: hour / 2, Retry: hour / 2}},
		{"sliding, weighted", sliding, [][2]int64{{0, 10}, {15 * second, 5}}, Answer{Allowed: true, Remaining: 0, Reset: 5 * second}},
		{"sliding, previous must slide out", sliding, [][2]int64{{0, 10}, {10 * second, 1}}, Answer{Reset: second, Retry: second}},
		{"sliding, this one must", sliding, [][2]int64{{0, 10}, {0, 1}}, Answer{Reset: 11 * second, Retry: 11 * second}},
		{"sliding, the whole of it must", sliding, [][2]int64{{0, 10}, {0, 10}}, Answer{Reset: 20 * second, Retry: 20 * second}},
		{"sliding, never", sliding, [][2]int64{{0, 11}}, Answer{Remaining: 10, Reset: 10 * second, Retry: Never}},
		{"sliding, seconds above a day", long, [][2]int64{{4 * hour, 100}, {29 * hour, 1}}, Answer{Reset: hour / 4, Retry: hour / 4}},
	} {
		var s stored
		var got Answer
		for _, take := range c.takes {
			us, cost := someday+take[0], c.plan.Cost(take[1])
			got = c.plan.Answer(s.take(&c.plan, us, cost), cost, us)
		}
		if got != c.want {
			t.Errorf("%s: takes %v: got %+v, want %+v", c.name, c.takes, got, c.want)
		}
	}
}

// windowModel counts by absolute window numbers, without packing, modulus or expiry.
type windowModel struct {
	length, tick int64 // in ticks; µs per tick
	counts       map[int64]int64
	last         int64 // the newest window written in
}

func newWindowModel(window int64) *windowModel {
	m := &windowModel{length: window / 1000, tick: 1000, counts: map[int64]int64{}, last: -1}
	if window > day {
		m.length, m.tick = window/second, second
	}
	return m
}

// at returns the window and the ticks elapsed in it. After a step back the newest window goes on from its start.
func (m *windowModel) at(us int64) (number, elapsed int64) {
	ticks := us / m.tick
	number, elapsed = ticks/m.length, ticks%m.length
	if number < m.last {
		return m.last, 0
	}
	return number, elapsed
}

// room is what a limit leaves at the time: for sliding the previous window weighs what is left of it.
func (m *windowModel) room(us, limit int64, sliding bool) *big.Rat {
	number, elapsed := m.at(us)
	room := big.NewRat(limit-m.counts[number], 1)
	if sliding {
		weight := big.NewRat(m.length-elapsed, m.length)
		room.Sub(room, weight.Mul(weight, big.NewRat(m.counts[number-1], 1)))
	}
	return room
}

func (m *windowModel) passes(us, limit, cost int64, sliding bool) bool {
	return m.room(us, limit, sliding).Cmp(big.NewRat(cost, 1)) >= 0
}

func (m *windowModel) charge(us, cost int64) {
	number, _ := m.at(us)
	m.counts[number] += cost
	m.last = number
}

// floor rounds a rational down, and negative ones to 0.
func floor(r *big.Rat) int64 {
	if r.Sign() < 0 {
		return 0
	}
	return new(big.Int).Div(r.Num(), r.Denom()).Int64()
}

var someWindows = rapid.SampledFrom([]int64{100_000, second, 7_919_000, minute, day, 25 * hour, year})

// drawTime moves a clock on, or a little back, in proportion to a length.
func drawTime(t *rapid.T, us, length, mostBack int64) int64 {
	kinds := []*rapid.Generator[int64]{
		rapid.Just(int64(0)), rapid.Int64Range(0, 5000), rapid.Int64Range(0, length),
		rapid.Custom(func(t *rapid.T) int64 {
			return length*rapid.Int64Range(1, 10).Draw(t, "windows") + rapid.Int64Range(-2000, 2000).Draw(t, "near")
		}),
	}
	if mostBack > 0 {
		kinds = append(kinds, rapid.Int64Range(-mostBack, 0))
	}
	return max(us+rapid.OneOf(kinds...).Draw(t, "pause"), someday/2)
}

func drawCost(t *rapid.T, limit int64) int64 {
	return rapid.OneOf(
		rapid.Just(int64(1)), rapid.Int64Range(0, 4), rapid.Int64Range(1, max(limit/2, 1)),
		rapid.SampledFrom([]int64{limit - 1, limit, limit + 1}),
	).Draw(t, "cost")
}

// checkWindow plays a random trace on a plan and on the model. Limits change on the way, the clock steps back by up to
// four windows from the newest.
func checkWindow(t *rapid.T, makePlan func(limit, window int64) Plan, most int64, sliding bool) {
	window := someWindows.Draw(t, "window")
	limits := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(1, 20), rapid.Int64Range(1, most), rapid.Just(most)), 1, 3).Draw(t, "limits")
	m, s := newWindowModel(window), &stored{}
	us, newest := someday+rapid.Int64Range(0, window).Draw(t, "start"), int64(0)
	for range 40 {
		us = max(drawTime(t, us, window, 4*window), newest-4*window)
		newest = max(newest, us)
		plan := makePlan(rapid.SampledFrom(limits).Draw(t, "limit"), window)
		cost := plan.Cost(drawCost(t, plan.Limit))
		if s.expire(us) { // forgotten for good, also if the clock now steps back
			if left := m.room(us, plan.Limit, sliding); left.Cmp(big.NewRat(plan.Limit, 1)) != 0 {
				t.Fatalf("at %d of %+v, counts %v: the value expired while it still counts, room %v", us, plan, m.counts, left)
			}
			m = newWindowModel(window)
		}
		passes := m.passes(us, plan.Limit, cost, sliding)
		remaining := m.room(us, plan.Limit, sliding)
		if passes {
			remaining.Sub(remaining, big.NewRat(cost, 1))
		}
		got := plan.Answer(s.take(&plan, us, cost), cost, us)
		if got.Allowed != passes || got.Remaining != floor(remaining) {
			t.Fatalf("at %d cost %d of %+v, counts %v: got %+v, want allowed=%v remaining=%v", us, cost, plan, m.counts, got, passes, remaining)
		}
		if !passes && cost <= plan.Limit {
			checkWait(t, m, &plan, us, cost, got.Retry, sliding)
		}
		if passes {
			m.charge(us, cost)
		}
	}
}

// checkWait holds a told wait to its promise: after it the charge passes, a tick earlier it does not.
func checkWait(t *rapid.T, m *windowModel, p *Plan, us, cost, wait int64, sliding bool) {
	if number, _ := m.at(us); number != us/m.tick/m.length {
		return // the clock stands before the window it counts in: when that one ends by this clock is not told
	}
	then := us/m.tick*m.tick + wait
	if wait <= 0 || !m.passes(then, p.Limit, cost, sliding) {
		t.Fatalf("at %d cost %d of %+v, counts %v: told to wait %d, and then it does not pass", us, cost, *p, m.counts, wait)
	}
	if before := then - m.tick; before > us && m.passes(before, p.Limit, cost, sliding) {
		t.Fatalf("at %d cost %d of %+v, counts %v: told to wait %d, but a tick less is enough", us, cost, *p, m.counts, wait)
	}
}

func TestFixedWindow_IsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { checkWindow(t, NewFixedWindow, MaxFixedLimit, false) })
}

func TestSlidingWindow_WeighsExactly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { checkWindow(t, NewSlidingWindow, MaxSlidingLimit, true) })
}
