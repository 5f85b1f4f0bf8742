// Package algo is the arithmetic of every algorithm, pure: state, time and cost go in, verdict and new state come out.
//
// It is the Go twin of redisstore/scripts/*.lua. Both compute with integers below 2^53 only, which Lua's doubles and
// Go's int64 hold exactly, so that replies and stored values agree bit for bit; a test compares them on random traces.
// Time is microseconds since the Unix epoch by the store's clock.
package algo

import "math"

// Kind is an algorithm in one of its number formats; its value is the code scripts dispatch on.
type Kind byte

// The kinds. A token bucket has two tick lengths: fine for exactness at high rates, long for bursts of many days.
const (
	FixedWindow   Kind = 'f'
	SlidingWindow Kind = 's'
	SlidingLog    Kind = 'l'
	TokenBucket   Kind = 'b'
	LongBucket    Kind = 'B'
)

// Plan is a limit translated into the integers its algorithm computes with. It is immutable.
type Plan struct {
	Kind Kind
	// Limit is units for windows and logs; for buckets the capacity in ticks, the debt allowed by a maximal delay included.
	Limit int64
	// Window is milliseconds for windows, microseconds for logs, 0 for buckets.
	Window int64
	// TTL is how long a written value is needed at most, in milliseconds.
	TTL int64

	perUnit int64 // ticks one unit of cost takes; 1 for windows and logs
	burst   int64 // Limit without the debt of a maximal delay
}

// Window and log plans. window is in microseconds.

// NewFixedWindow admits limit units in each aligned window.
func NewFixedWindow(limit, window int64) Plan {
	return Plan{Kind: FixedWindow, Limit: limit, Window: window / 1000, TTL: 2 * window / 1000, perUnit: 1, burst: limit}
}

// NewSlidingWindow admits limit units, the previous window's weighted.
func NewSlidingWindow(limit, window int64) Plan {
	return Plan{Kind: SlidingWindow, Limit: limit, Window: window / 1000, TTL: 2 * window / 1000, perUnit: 1, burst: limit}
}

// NewSlidingLog admits limit units in any interval of length window.
func NewSlidingLog(limit, window int64) Plan {
	return Plan{Kind: SlidingLog, Limit: limit, Window: window, TTL: window/1000 + 1000, perUnit: 1, burst: limit}
}

// Cost translates units into what Take and the scripts are given. A cost that can never pass is cut to one unit more
// than fits, so that no number leaves the exact range.
func (p *Plan) Cost(units int64) int64 {
	most := p.Limit/p.perUnit + 1
	if units > most || p.Kind == SlidingLog && units > MaxLogCost {
		units = most
	}
	return units * p.perUnit
}

// Outcome is one step's result.
type Outcome struct {
	// Reply is what the script replies: refused if negative.
	Reply int64
	// Next is the value to store when the charge is taken.
	Next int64
}

// Take charges cost to the stored value v (has: whether there is one) at the time us. The log has LogTake.
func (p *Plan) Take(v int64, has bool, us, cost int64) Outcome {
	switch p.Kind {
	case FixedWindow:
		return p.takeFixed(v, has, us, cost)
	case SlidingWindow:
		return p.takeSliding(v, has, us, cost)
	default:
		return p.takeBucket(v, has, us, cost)
	}
}

// Give returns the value after a charge of cost, taken at us0, is given back at us; and how much of it came back.
// A give-back that comes too late, or before its take by the clock, changes nothing.
func (p *Plan) Give(v, us, us0, cost int64) (next, credit int64) {
	if us < us0 {
		return v, 0
	}
	switch p.Kind {
	case FixedWindow:
		return p.giveFixed(v, us, us0, cost)
	case SlidingWindow:
		return p.giveSliding(v, us, us0, cost)
	default:
		return p.giveBucket(v, us, us0, cost)
	}
}

// Uncharged turns the reply to a charge that passed into the reply had nothing been charged.
func (p *Plan) Uncharged(reply, cost int64) int64 {
	if p.Kind == SlidingWindow || p.Kind == FixedWindow && !p.Timed() {
		return reply + cost<<replyTimeBits
	}
	return reply + cost
}

// Answer is a reply made readable. Times are in microseconds.
type Answer struct {
	Allowed   bool
	Remaining int64
	Reset     int64
	Retry     int64 // 0: passed; Never: cannot pass
	Delay     int64
}

// Never is the Retry of a cost that no amount of waiting lets pass.
const Never = math.MaxInt64

// Answer reads a reply of Take, LogTake or a script. us is the time of the reply, needed only where Timed says so.
func (p *Plan) Answer(reply, cost, us int64) Answer {
	var a Answer
	switch p.Kind {
	case FixedWindow, SlidingWindow:
		a = p.readWindow(reply, us)
	case SlidingLog:
		a = p.readLog(reply)
	default:
		a = p.readBucket(reply, cost)
	}
	if cost > p.Limit {
		a.Retry = Never
	}
	a.Remaining = min(max(a.Remaining, 0), p.burst/p.perUnit)
	return a
}

// Timed says that a reply cannot be read without the time it was made: a fixed window's count may need all 53 bits.
func (p *Plan) Timed() bool { return p.Kind == FixedWindow && p.Limit > MaxSlidingLimit }
