// Package counter holds what every store does with a charge, whatever it keeps its counters in: the plan of its limit,
// the encoding of its key, and the answer to its caller.
package counter

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/algo"
)

// Plan is a limit's plan with what a store derived from it.
type Plan[T any] struct {
	algo.Plan
	// Extra is the store's own: prepared script arguments, for instance.
	Extra T
	// Err is set when the limit is invalid; nothing else is then.
	Err error
}

// Plans remembers the plan of each limit it has seen. Reading takes no lock. The zero value is ready; it is safe for
// concurrent use.
type Plans[T any] struct {
	// Prepare fills Extra of a new plan. Default: nothing.
	Prepare func(algo.Plan) T

	known atomic.Pointer[map[planKey]*Plan[T]]
	mu    sync.Mutex // held while known is replaced
}

type planKey struct {
	limit    sluice.Limit
	maxDelay time.Duration
}

// maxPlans bounds the memory for limits that callers invent; past it all are forgotten and made anew.
const maxPlans = 10_000

// For returns the plan of the charge's limit.
func (p *Plans[T]) For(c *sluice.Charge) *Plan[T] {
	key := planKey{c.Limit, c.MaxDelay}
	if known := p.known.Load(); known != nil {
		if plan, ok := (*known)[key]; ok {
			return plan
		}
	}
	return p.add(key)
}

func (p *Plans[T]) add(key planKey) *Plan[T] {
	plan := &Plan[T]{Err: key.limit.Validate()}
	if plan.Err == nil {
		plan.Plan = newPlan(key.limit, key.maxDelay)
		if p.Prepare != nil {
			plan.Extra = p.Prepare(plan.Plan)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	next := map[planKey]*Plan[T]{}
	if known := p.known.Load(); known != nil && len(*known) < maxPlans {
		next = maps.Clone(*known)
	}
	next[key] = plan
	p.known.Store(&next)
	return plan
}

func newPlan(l sluice.Limit, maxDelay time.Duration) algo.Plan {
	window := l.Window.Microseconds()
	switch l.Algorithm {
	case sluice.FixedWindow:
		return algo.NewFixedWindow(l.Limit, window)
	case sluice.SlidingLog:
		return algo.NewSlidingLog(l.Limit, window)
	case sluice.TokenBucket:
		return algo.NewTokenBucket(l.Limit, window, l.Capacity(), maxDelay.Microseconds())
	default:
		return algo.NewSlidingWindow(l.Limit, window)
	}
}

// Fill writes an answer into a charge's state. It leaves the receipt alone.
func Fill(s *sluice.State, a algo.Answer) {
	s.Allowed = a.Allowed
	s.Mode = sluice.Exact
	s.Remaining = a.Remaining
	s.ResetAfter = duration(a.Reset)
	s.RetryAfter = duration(a.Retry)
	s.Delay = duration(a.Delay)
}

func duration(us int64) time.Duration {
	if us == algo.Never {
		return sluice.Never
	}
	return time.Duration(us) * time.Microsecond
}

// Fail writes one error into every charge.
func Fail(charges []sluice.Charge, err error) {
	for i := range charges {
		charges[i].State = sluice.State{Err: err}
	}
}
