package sluice

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Checker decides about requests: a *Limiter in this process, or a client of one elsewhere.
type Checker interface {
	Check(ctx context.Context, req Request) (Decision, error)
}

// Limiter decides about requests by a rule set and a store. It is safe for concurrent use, and the rule set can be
// replaced while it runs.
type Limiter struct {
	store Store
	opts  Options
	rules atomic.Pointer[RuleSet]
	off   atomic.Bool

	deadlines deadlines
	node      uint64
	sequence  atomic.Uint64
	scratch   sync.Pool
	batches   sync.Pool
}

// Options tune a Limiter. The zero value works.
type Options struct {
	// Timeout bounds every decision, whatever the store does; beyond it each rule's OnStoreError decides. A caller's
	// earlier deadline bounds it further. Negative: only the caller's. Default 10 ms.
	Timeout time.Duration
	// Fallback decides for rules with OnStoreError FallLocal while the store does not answer, usually a memstore.
	// Default: none, and such requests pass, marked Open.
	Fallback Store
	// Nodes tells how many nodes share the limits, so that each takes its share in the fallback. Default: one.
	Nodes func() int
	// Observer is told of every decision. Default: nobody.
	Observer Observer
	// Now is the clock for blocks that end. It never decides a limit. Default time.Now.
	Now func() time.Time
}

// New returns a limiter. It starts no goroutine.
func New(store Store, rules *RuleSet, opts Options) *Limiter {
	if opts.Timeout == 0 {
		opts.Timeout = 10 * time.Millisecond
	}
	if opts.Nodes == nil {
		opts.Nodes = func() int { return 1 }
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	var node [8]byte
	_, _ = rand.Read(node[:]) // never fails
	l := &Limiter{store: store, opts: opts, deadlines: deadlines{timeout: opts.Timeout}, node: binary.BigEndian.Uint64(node[:])}
	l.scratch.New = func() any { return newScratch(l.deadlines.lane()) }
	l.batches.New = func() any { return new(batch) }
	l.rules.Store(rules)
	return l
}

// PerKey returns a rule set for code that has one thing to limit: every key by itself, by all of the limits. It is used
// with Allow. It panics when a limit is invalid, because the limits stand in the program's text.
func PerKey(limits ...Limit) *RuleSet {
	rules, faults := Compile([]Rule{{Name: "per-key", Key: []Dimension{User}, Limits: limits, Label: "default"}})
	for _, f := range faults {
		if !f.Warning {
			panic("sluice: " + f.Error())
		}
	}
	return rules
}

// SetRules replaces the rule set. Decisions under way finish with the one they began with.
func (l *Limiter) SetRules(rules *RuleSet) { l.rules.Store(rules) }

// Rules returns the rule set in force.
func (l *Limiter) Rules() *RuleSet { return l.rules.Load() }

// SetEnabled switches the limiter off and on. Off, everything passes, with the cause Disabled.
func (l *Limiter) SetEnabled(on bool) { l.off.Store(!on) }

// Allow charges one unit to a key, for rule sets made by PerKey.
func (l *Limiter) Allow(ctx context.Context, key string) (Decision, error) {
	return l.Check(ctx, Request{Subject: Subject{User: key}})
}

// Check decides about a request and charges it when it is allowed. It answers within Options.Timeout whatever the store
// does: an error means that the request is invalid or ctx is done, never that the store failed.
func (l *Limiter) Check(ctx context.Context, req Request) (d Decision, err error) {
	err = l.decide(ctx, &req, &d, true)
	if l.opts.Observer != nil && err == nil {
		l.opts.Observer.Decided(ctx, req, d)
	}
	return d, err
}

// Peek decides as Check would, and charges nothing. The results' Remaining is what is left now.
func (l *Limiter) Peek(ctx context.Context, req Request) (d Decision, err error) {
	err = l.decide(ctx, &req, &d, false)
	return d, err
}

// Wait checks until the request is allowed and its delay is over. It returns the last decision with an error when ctx
// ends, when the wait would outlast ctx's deadline, or when waiting cannot help.
func (l *Limiter) Wait(ctx context.Context, req Request) (Decision, error) {
	for {
		d, err := l.Check(ctx, req)
		if err != nil {
			return d, err
		}
		pause := d.Delay
		if !d.Allowed {
			pause = d.RetryAfter
		}
		if err := sleep(ctx, pause); err != nil {
			return d, fmt.Errorf("%s: %w", d.Reason(), err)
		}
		if d.Allowed {
			return d, nil
		}
	}
}

// sleep waits for d unless ctx ends before.
func sleep(ctx context.Context, d time.Duration) error {
	if d == Never {
		return ErrNeverPasses
	}
	if d <= 0 {
		return ctx.Err()
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < d {
		return context.DeadlineExceeded
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Refund gives back what an allowed decision took. The request must be the one the decision was made for, with
// Refundable set. Refund a decision at most once; a second time would admit too much. Token buckets forgive the cost
// less what has refilled since. What a fallback took is not given back.
func (l *Limiter) Refund(ctx context.Context, req Request, d Decision) error {
	s := l.scratch.Get().(*scratch)
	defer l.release(s)
	for _, r := range d.Results() {
		if r.receipt != (Receipt{}) {
			s.add(&req, Matched{Rule: r.Rule, Route: r.route}, r.Limit, r.cost)
			s.charges[len(s.charges)-1].State = State{Receipt: r.receipt}
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.patience())
	defer cancel()
	l.store.Give(ctx, s.charges)
	return s.storeErr()
}

// Credit gives back the request's cost to the counters of every rule that matches it, as of now: to the window that
// runs, or off the bucket's debt, and never more than is counted. It needs no decision that took the units, so giving
// twice admits twice. A sliding log knows every unit by its decision: with one among the rules nothing is given.
func (l *Limiter) Credit(ctx context.Context, req Request) error {
	s := l.scratch.Get().(*scratch)
	defer l.release(s)
	req.Refundable = true
	s.match(l.rules.Load(), &req)
	for i := range s.charges {
		if s.charges[i].Limit.Algorithm == SlidingLog {
			return fmt.Errorf("%w: rule %q has a sliding_log, which takes back only what a decision names", ErrInvalidRequest, s.owners[i].Rule.Name)
		}
	}
	if len(s.charges) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.patience())
	defer cancel()
	s.groups[0] = s.charges
	l.store.Peek(ctx, s.groups[:]) // for the store's clock
	if err := s.storeErr(); err != nil {
		return err
	}
	for i := range s.charges {
		s.charges[i].State.Receipt = Receipt{Time: s.charges[i].State.Time}
	}
	l.store.Give(ctx, s.charges)
	return s.storeErr()
}

// Reset forgets the counters of every rule that matches the request, for its subject.
func (l *Limiter) Reset(ctx context.Context, req Request) error {
	s := l.scratch.Get().(*scratch)
	defer l.release(s)
	s.match(l.rules.Load(), &req)
	ctx, cancel := context.WithTimeout(ctx, l.patience())
	defer cancel()
	l.store.Reset(ctx, s.charges)
	return s.storeErr()
}

// patience bounds calls that are no decisions: nobody is refused while they wait.
func (l *Limiter) patience() time.Duration { return max(10*l.opts.Timeout, time.Second) }

func (l *Limiter) release(s *scratch) {
	s.clear()
	l.scratch.Put(s)
}

// newID numbers decisions. The number is mixed, because clients see the id and need not learn how many there are.
func (l *Limiter) newID() DecisionID {
	x := l.sequence.Add(1) ^ l.node
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return DecisionID{l.node, x ^ x>>31}
}
