package algo

import "fmt"

// A token bucket is one number, the theoretical arrival time (TAT): when the bucket would be full again. It lives on a
// ring of 2^53 ticks much finer than a microsecond, so that every rate up to 5 million per second is met within 0.1 %.
// A key lives as long as its debt and a second, so a live TAT is never half a ring away and differences are exact.
//
//	fine: 2^13 ticks per µs, ring of 12.7 days, stored as ticks ≥ 0
//	long: 2^3 ticks per µs, ring of 35.7 years, stored as -1-ticks
const (
	ring     = 1 << 53
	halfRing = 1 << 52
	// A quarter of the ring: the longest debt that is told apart from a full bucket whatever the clock does.
	maxDebt = 1 << 51

	fineTicks    = 8192
	longTicks    = 8
	ticksPerLong = fineTicks / longTicks

	// What is told of a debt that a long bucket left to a fine one: 9.5 days. With a larger one the reply would leave
	// the exact range. It is refused either way, as no fine bucket holds more than maxDebt.
	maxForeignDebt = ring - maxDebt
)

// NewTokenBucket refills limit units per window (µs) and holds burst; its debt may exceed the burst by maxDelay (µs).
func NewTokenBucket(limit, window, burst, maxDelay int64) Plan {
	p := Plan{Kind: TokenBucket, perUnit: perUnit(limit, window, fineTicks)}
	ticks := int64(fineTicks)
	if !fits(burst, p.perUnit, maxDelay, ticks) {
		ticks = longTicks
		p.Kind, p.perUnit = LongBucket, perUnit(limit, window, longTicks)
	}
	p.burst = burst * p.perUnit
	p.Limit = p.burst + maxDelay*ticks
	p.TTL = (p.Limit+ticks*1000-1)/(ticks*1000) + 1000
	return p
}

// perUnit is rounded up once and then used linearly: burst units always fit a full bucket, no mix of costs gains.
func perUnit(limit, window, ticks int64) int64 { return (window*ticks + limit - 1) / limit }

func fits(burst, perUnit, maxDelay, ticks int64) bool {
	return burst <= (maxDebt-maxDelay*ticks)/perUnit
}

// BucketFits tells whether a bucket's numbers stay exact: limit per window (µs), burst.
func BucketFits(limit, window, burst int64) error {
	if limit > 5*window {
		return fmt.Errorf("%d per %d ms is more than 5,000,000 per second, the fastest token_bucket", limit, window/1000)
	}
	const aMinute = 60_000_000 // room for a throttle's debt
	if fits(burst, perUnit(limit, window, fineTicks), aMinute, fineTicks) {
		return nil
	}
	unit := perUnit(limit, window, longTicks)
	if !fits(burst, unit, aMinute, longTicks) {
		return fmt.Errorf("burst %d takes more than 8.9 years to refill", burst)
	}
	if 1000*(unit*limit-window*longTicks) > window*longTicks {
		return fmt.Errorf("burst %d takes more than 3.1 days to refill, and a rate above 8,000 per second is not exact for so long: lower the burst", burst)
	}
	return nil
}

func (p *Plan) ticks() int64 {
	if p.Kind == LongBucket {
		return longTicks
	}
	return fineTicks
}

// now is the clock on the ring. The product wraps around in uint64, which a power of two does not mind.
func now(us, ticks int64) int64 { return int64(uint64(us) * uint64(ticks) & (ring - 1)) }

// around brings a difference of two places on the ring into half a ring either way.
func around(d int64) int64 {
	switch {
	case d < -halfRing:
		return d + ring
	case d > halfRing:
		return d - ring
	}
	return d
}

// debt reads a stored value as ticks until full, whichever unit wrote it.
func (p *Plan) debt(v, us int64) (debt int64, foreign bool) {
	if p.Kind == LongBucket {
		v = -1 - v
	}
	if v >= 0 {
		return around(v - now(us, p.ticks())), false
	}
	if p.Kind == LongBucket { // written in fine ticks: round up
		d := around(-1 - v - now(us, fineTicks))
		return (d + ticksPerLong - 1) >> 10, true
	}
	return min(around(-1-v-now(us, longTicks))*ticksPerLong, maxForeignDebt), true
}

func (p *Plan) store(us, debt int64) int64 {
	tat := (now(us, p.ticks()) + debt) & (ring - 1)
	if p.Kind == LongBucket {
		return -1 - tat
	}
	return tat
}

func (p *Plan) takeBucket(v int64, has bool, us, cost int64) Outcome {
	var debt int64
	if has {
		debt, _ = p.debt(v, us)
		debt = max(debt, 0) // never fuller than full
	}
	return Outcome{Reply: p.Limit - debt - cost, Next: p.store(us, debt+cost)}
}

// giveBucket forgives the cost less the time passed since. Forgiving all of it would admit too much where the bucket
// had filled up meanwhile; this way the debt never falls below what it would be had the charge not been taken
// (docs/decisions/give-back.md has the proof).
func (p *Plan) giveBucket(v, us, us0, cost int64) (next, credit int64) {
	debt, foreign := p.debt(v, us)
	credit = min(cost-(us-us0)*p.ticks(), debt)
	if foreign || credit <= 0 {
		return v, 0
	}
	return p.store(us, debt-credit), credit
}

func (p *Plan) readBucket(reply, cost int64) Answer {
	a := Answer{Allowed: reply >= 0}
	if !a.Allowed {
		a.Retry = p.micros(-reply)
		reply += cost // nothing was charged
	}
	debt := p.Limit - reply
	a.Reset = p.micros(debt)
	a.Remaining = max(p.burst-debt, 0) / p.perUnit
	if a.Allowed {
		a.Delay = p.micros(max(debt-p.burst, 0))
	}
	return a
}

// micros rounds up: after that time by the store's clock the ticks have passed.
func (p *Plan) micros(ticks int64) int64 { return (ticks + p.ticks() - 1) / p.ticks() }
