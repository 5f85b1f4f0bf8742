package algo

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestBucket_AnswersWhatTheTableSays(t *testing.T) {
	t.Parallel()
	tenth := NewTokenBucket(10, second, 20, 0)  // one per 100 ms
	seventh := NewTokenBucket(7, second, 10, 0) // a unit is no whole number of ticks
	daily := NewTokenBucket(100, day, 1000, 0)  // ten days: long ticks
	throttle := NewTokenBucket(10, second, 2, second/2)
	for _, c := range []struct {
		name  string
		plan  Plan
		takes [][2]int64 // µs after someday, cost; the last one is what is answered
		want  Answer
	}{
		{"first", tenth, [][2]int64{{0, 1}}, Answer{Allowed: true, Remaining: 19, Reset: second / 10}},
		{"all at once", tenth, [][2]int64{{0, 20}}, Answer{Allowed: true, Reset: 2 * second}},
		{"empty", tenth, [][2]int64{{0, 20}, {0, 1}}, Answer{Reset: 2 * second, Retry: second / 10}},
		{"a microsecond early", tenth, [][2]int64{{0, 20}, {99_999, 1}}, Answer{Reset: 1900_001, Retry: 1}},
		{"in time", tenth, [][2]int64{{0, 20}, {100_000, 1}}, Answer{Allowed: true, Reset: 2 * second}},
		{"too much now", tenth, [][2]int64{{0, 15}, {0, 10}}, Answer{Remaining: 5, Reset: 1500_000, Retry: second / 2}},
		{"never", tenth, [][2]int64{{0, 21}}, Answer{Remaining: 20, Retry: Never}},
		{"no cost", tenth, [][2]int64{{0, 20}, {0, 0}}, Answer{Allowed: true, Reset: 2 * second}},
		{"fractions fit", seventh, [][2]int64{{0, 10}}, Answer{Allowed: true, Reset: 1428_572}},
		{"never fuller than full", seventh, [][2]int64{{0, 10}, {hour, 10}}, Answer{Allowed: true, Reset: 1428_572}},
		{"long ticks", daily, [][2]int64{{0, 1000}, {0, 1}}, Answer{Reset: 10 * day, Retry: day / 100}},
		{"delay", throttle, [][2]int64{{0, 2}, {0, 1}}, Answer{Allowed: true, Reset: 300_000, Delay: 100_000}},
		{"delay, all of it", throttle, [][2]int64{{0, 7}}, Answer{Allowed: true, Reset: 700_000, Delay: 500_000}},
		{"delay, beyond", throttle, [][2]int64{{0, 7}, {0, 1}}, Answer{Reset: 700_000, Retry: 100_000}},
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
	if tenth.Kind != TokenBucket || daily.Kind != LongBucket {
		t.Errorf("got kinds %c and %c, want %c and %c", tenth.Kind, daily.Kind, TokenBucket, LongBucket)
	}
}

// bucketModel is GCRA in unbounded integers: no ring, no packing.
type bucketModel struct {
	perUnit, capacity, ticks *big.Int
	full                     *big.Int // when, in ticks since the epoch
}

func newBucketModel(limit, window, burst, maxDelay, ticks int64) *bucketModel {
	n := big.NewInt
	work := new(big.Int).Mul(n(window), n(ticks))
	perUnit := work.Add(work, n(limit-1)).Div(work, n(limit)) // rounded up
	capacity := new(big.Int).Mul(n(burst), perUnit)
	capacity.Add(capacity, new(big.Int).Mul(n(maxDelay), n(ticks)))
	return &bucketModel{perUnit: perUnit, capacity: capacity, ticks: n(ticks), full: n(0)}
}

// take returns the room left after the charge, negative when it does not pass.
func (m *bucketModel) take(us, units int64) *big.Int {
	now := new(big.Int).Mul(big.NewInt(us), m.ticks)
	full := m.full
	if full.Cmp(now) < 0 {
		full = now
	}
	full = new(big.Int).Add(full, new(big.Int).Mul(m.perUnit, big.NewInt(units)))
	room := new(big.Int).Add(now, m.capacity)
	if room.Sub(room, full); room.Sign() >= 0 {
		m.full = full
	}
	return room
}

// bucketShape is a token bucket's numbers.
type bucketShape struct{ limit, window, burst, delay int64 }

func (b bucketShape) plan() Plan { return NewTokenBucket(b.limit, b.window, b.burst, b.delay) }

// drawBucket draws numbers of a valid bucket, of both tick lengths.
func drawBucket(t *rapid.T) bucketShape {
	return rapid.Custom(func(t *rapid.T) bucketShape {
		window := rapid.SampledFrom([]int64{100_000, second, 7_919_000, minute, hour, day, year}).Draw(t, "window")
		limit := rapid.OneOf(rapid.Int64Range(1, 20), rapid.Int64Range(1, 5*window)).Draw(t, "limit")
		days := max(limit/max(window/day, 1)*max(day/window, 1), 1)
		burst := rapid.OneOf(rapid.Int64Range(1, 20), rapid.Int64Range(1, 3*days), rapid.Int64Range(1, min(days, 1<<50)*3000)).Draw(t, "burst")
		return bucketShape{limit, window, burst, rapid.SampledFrom([]int64{0, second / 2, minute}).Draw(t, "delay")}
	}).Filter(func(b bucketShape) bool { return BucketFits(b.limit, b.window, b.burst) == nil }).Draw(t, "bucket")
}

// ringEdge is where both rings begin anew: 2^50 µs, and so 2^40.
const ringEdge = int64(2) << 50

func TestBucket_IsGCRAInWholeTicks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shape := drawBucket(t)
		p := shape.plan()
		m, s := newBucketModel(shape.limit, shape.window, shape.burst, shape.delay, p.ticks()), &stored{}
		refill := p.micros(p.Limit)
		us := rapid.SampledFrom([]int64{someday, ringEdge - 1, ringEdge - refill/2}).Draw(t, "start")
		for range 40 {
			us = drawTime(t, us, max(rapid.SampledFrom([]int64{p.micros(p.perUnit), refill}).Draw(t, "length"), 1), 0)
			units := drawCost(t, shape.burst)
			cost := p.Cost(units)
			want := m.take(us, cost/p.perUnit)
			if got := s.take(&p, us, cost); want.Cmp(big.NewInt(got)) != 0 {
				t.Fatalf("at %d cost %d of %+v: got reply %d, want %v", us, units, p, got, want)
			}
		}
	})
}

// Where on the ring a trace happens changes nothing: a reply depends on differences of time only.
func TestBucket_DoesNotSeeTheRingsEdge(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawBucket(t).plan()
		refill := p.micros(p.Limit)
		here, there := someday, ringEdge-rapid.Int64Range(0, 2*refill).Draw(t, "before the edge")
		var a, b stored
		passed := int64(0)
		for range 40 {
			passed += rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, refill), rapid.Int64Range(-refill/2, refill/2)).Draw(t, "pause")
			passed = max(passed, 0)
			cost := p.Cost(drawCost(t, p.burst/p.perUnit))
			want, got := a.takeForever(&p, here+passed, cost), b.takeForever(&p, there+passed, cost)
			if got != want {
				t.Fatalf("%+v cost %d, %d µs after the start %d: got %d, want %d as after %d", p, cost, passed, there, got, want, here)
			}
		}
	})
}

// takeForever is take without expiry, whose milliseconds two starts may round differently.
func (s *stored) takeForever(p *Plan, us, cost int64) int64 {
	s.expires = us
	return s.take(p, us, cost)
}

// A4: in any interval at most burst + rate × length.
func TestBucket_AdmitsAtMostBurstAndRateInAnyInterval(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := drawBucket(t)
		b.delay = 0
		p := b.plan()
		var s stored
		us := ringEdge - p.micros(p.Limit)/2
		type admitted struct{ us, units int64 }
		var list []admitted
		for range 60 {
			us += rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 2*p.micros(p.perUnit)), rapid.Int64Range(0, p.micros(p.Limit))).Draw(t, "pause")
			units := min(drawCost(t, b.burst), b.burst)
			if s.take(&p, us, p.Cost(units)) >= 0 {
				list = append(list, admitted{us, units})
			}
		}
		for i := range list {
			sum := int64(0)
			for _, a := range list[i:] {
				sum += a.units
				most := big.NewRat(b.limit, b.window)
				most.Mul(most, big.NewRat(a.us-list[i].us, 1)).Add(most, big.NewRat(b.burst, 1))
				if most.Cmp(big.NewRat(sum, 1)) < 0 {
					t.Fatalf("%+v admitted %d units within %d µs, want at most %v", b, sum, a.us-list[i].us, most)
				}
			}
		}
	})
}

// Crossing between the tick lengths rounds the debt up, never down, and by less than one long tick each time.
func TestBucket_CrossingUnitsLosesNoDebt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		fine, long := NewTokenBucket(7, day, 20, 0), NewTokenBucket(7, day, 7000, 0)
		s, us := &stored{}, ringEdge-rapid.Int64Range(0, 3*day).Draw(t, "start")
		full := new(big.Rat) // when the bucket must be full at the earliest, in µs
		slack := new(big.Rat)
		for range 40 {
			us += rapid.Int64Range(0, day/7).Draw(t, "pause")
			p := &fine
			if rapid.Bool().Draw(t, "long") {
				p = &long
			}
			crosses := s.has && (s.value < 0) != (p.Kind == LongBucket)
			cost := p.Cost(rapid.Int64Range(0, 3).Draw(t, "units"))
			if s.take(p, us, cost) < 0 {
				continue
			}
			if now := big.NewRat(us, 1); full.Cmp(now) < 0 {
				full, slack = now, new(big.Rat)
			}
			full = new(big.Rat).Add(full, big.NewRat(cost, p.ticks()))
			if crosses {
				slack = new(big.Rat).Add(slack, big.NewRat(1, longTicks))
			}
			debt, _ := p.debt(s.value, us)
			got := new(big.Rat).Add(big.NewRat(us, 1), big.NewRat(debt, p.ticks()))
			if most := new(big.Rat).Add(full, slack); got.Cmp(full) < 0 || got.Cmp(most) > 0 {
				t.Fatalf("at %d in kind %c: full at %v, want between %v and %v", us, p.Kind, got, full, most)
			}
		}
	})
}

func TestBucketFits_AtItsBoundaries(t *testing.T) {
	t.Parallel()
	const delay = 60 * second // what is kept free for a throttle
	fineDays := func(perUnit int64) int64 { return (maxDebt - delay*fineTicks) / perUnit }
	longDays := func(perUnit int64) int64 { return (maxDebt - delay*longTicks) / perUnit }
	perSecond8000, perDay := second*longTicks/8000, day*longTicks // long ticks per unit
	for _, c := range []struct {
		limit, window, burst int64
		want                 string // part of the error; "" fits
		kind                 Kind
	}{
		{5_000_000, second, 1, "", TokenBucket},
		{5_000_001, second, 1, "5,000,000 per second", 0},
		{500_001, second / 10, 1, "5,000,000 per second", 0},
		{1, year, 1, "", LongBucket},
		{1, day, fineDays(day * fineTicks), "", TokenBucket},
		{1, day, fineDays(day*fineTicks) + 1, "", LongBucket},
		{1, day, longDays(perDay), "", LongBucket},
		{1, day, longDays(perDay) + 1, "8.9 years", 0},
		{8000, second, fineDays(second*fineTicks/8000) + 1, "", LongBucket},
		{8000, second, longDays(perSecond8000), "", LongBucket},
		{8001, second, fineDays(second*fineTicks/8001 + 1), "", TokenBucket}, // rounded up
		{8001, second, 1 << 40, "", LongBucket},                              // a unit of 999.875 long ticks: rounded up, 0.0125 % slower
		{1_000_000, second, 1 << 40, "", LongBucket},                         // of 8 exactly
		{999_983, second, 1 << 40, "8,000 per second", 0},
		{5_000_000, second, 1 << 62, "8.9 years", 0},
	} {
		err := BucketFits(c.limit, c.window, c.burst)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%d per %d µs, burst %d: got error %v, want %q", c.limit, c.window, c.burst, err, c.want)
		}
		if c.want == "" {
			if p := NewTokenBucket(c.limit, c.window, c.burst, delay); p.Kind != c.kind {
				t.Errorf("%d per %d µs, burst %d: got kind %c, want %c", c.limit, c.window, c.burst, p.Kind, c.kind)
			}
		}
	}
}

// What fits stays exact: numbers below a quarter of the ring, a rate at most 0.1 % below the asked one, never above.
func TestBucketFits_MeansExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := drawBucket(t)
		p := b.plan()
		exact := big.NewRat(b.window*p.ticks(), b.limit) // ticks per unit
		got := big.NewRat(p.perUnit, 1)
		most := new(big.Rat).Mul(exact, big.NewRat(1001, 1000))
		if got.Cmp(exact) < 0 || got.Cmp(most) > 0 {
			t.Fatalf("%+v: a unit takes %v ticks, want between %v and 0.1 %% more", b, got, exact)
		}
		if p.Limit > maxDebt || p.Limit != b.burst*p.perUnit+b.delay*p.ticks() || p.TTL*1000*p.ticks() < p.Limit {
			t.Fatalf("%+v: got %+v, want the capacity and a life as long, below 2^51 ticks", b, p)
		}
	})
}
