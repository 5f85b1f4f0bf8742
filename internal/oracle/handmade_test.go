package oracle_test

import (
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/oracle"
)

// start is a store time at which a window of a second, and one of an hour, begin.
const start = int64(1_800_000_000_000_000)

const (
	ms     = int64(1000)
	second = 1000 * ms
)

// The limits of the hand-made logs: ten units a second each.
var (
	fixed   = sluice.Limit{Algorithm: sluice.FixedWindow, Limit: 10, Window: time.Second}
	sliding = sluice.Limit{Algorithm: sluice.SlidingWindow, Limit: 10, Window: time.Second}
	logged  = sluice.Limit{Algorithm: sluice.SlidingLog, Limit: 10, Window: time.Second}
	bucket  = sluice.Limit{Algorithm: sluice.TokenBucket, Limit: 10, Window: time.Second}
)

// perUnit is a tenth of a second in ticks of 1/8192 µs.
const perUnit = 100_000 * 8192

// story is a log written by hand.
type story struct{ oracle.Log }

// about starts a story; every limit is a counter, and all lie in one shard.
func about(limits ...sluice.Limit) *story {
	s := &story{}
	for i, l := range limits {
		s.Counters = append(s.Counters, oracle.Counter{Key: string(rune('a' + i)), Limit: l})
	}
	return s
}

// acrossShards puts every counter into a shard of its own.
func (s *story) acrossShards() *story {
	for i := range s.Counters {
		s.Counters[i].Shard = uint16(i)
	}
	return s
}

// pass and refuse are charges to counter 0 at a time after start, with what they said they left behind.
func pass(at, cost, remaining int64) oracle.Charge {
	return oracle.Charge{Time: start + at, Cost: cost, Remaining: remaining, Passed: true}
}

func refuse(at, cost, remaining int64) oracle.Charge {
	return oracle.Charge{Time: start + at, Cost: cost, Remaining: remaining}
}

// on moves a charge to another counter.
func on(counter int32, c oracle.Charge) oracle.Charge {
	c.Counter = counter
	return c
}

// group adds one decision. Its verdict is what its charges say.
func (s *story) group(charges ...oracle.Charge) *story {
	allowed, oneShard := true, true
	for i := range charges {
		allowed = allowed && (charges[i].Passed || charges[i].Shadow) && !charges[i].Lost
		oneShard = oneShard && s.Counters[charges[i].Counter].Shard == s.Counters[charges[0].Counter].Shard
	}
	id := oracle.NewGroupID(0, uint64(len(s.Charges)))
	for _, c := range charges {
		c.Group, c.Allowed, c.OneShard = id, allowed, oneShard
		c.Called, c.Returned = c.Time-100, c.Time+100
		s.Charges = append(s.Charges, c)
	}
	return s
}

// each adds every charge as a decision of its own.
func (s *story) each(charges ...oracle.Charge) *story {
	for _, c := range charges {
		s.group(c)
	}
	return s
}

// giveBack returns to counter what was charged at taken.
func (s *story) giveBack(counter int32, at, taken, cost, back int64) *story {
	s.Givebacks = append(s.Givebacks, oracle.Giveback{
		Counter: counter, Time: start + at, Taken: start + taken, Cost: cost, Back: back, Called: start + at - 50, Returned: start + at + 50,
	})
	return s
}

// found is a value read from the store, with a second left to live.
func found(at, value int64) oracle.Leftover {
	return oracle.Leftover{Key: "a", ReadAt: start + at, Present: true, Value: value, TTL: time.Second}
}
