package sluice

import (
	"context"
	"fmt"
)

// batch is what several decisions made together need while they are made. It is pooled.
type batch struct {
	open   []opened
	groups [][]Charge
}

// opened is a request that the store decides.
type opened struct {
	at      int // its place in the call
	scratch *scratch
}

// CheckAll decides about several requests, each by itself as Check would, with one call to the store and one rule set;
// decisions[i] answers reqs[i] and must be zero. Requests that name the same counter are taken in their order. An error
// means that nothing was charged: a request is invalid, or ctx is done.
func (l *Limiter) CheckAll(ctx context.Context, reqs []Request, decisions []Decision) error {
	if len(decisions) != len(reqs) {
		return fmt.Errorf("%w: %d requests and room for %d decisions", ErrInvalidRequest, len(reqs), len(decisions))
	}
	b := l.batches.Get().(*batch)
	defer l.releaseBatch(b)
	rules := l.rules.Load()
	for i := range reqs {
		s := l.scratch.Get().(*scratch)
		b.open = append(b.open, opened{i, s})
		open, err := l.begin(ctx, rules, &reqs[i], &decisions[i], s)
		if err != nil {
			return fmt.Errorf("request %d: %w", i+1, err)
		}
		if open {
			b.groups = append(b.groups, s.charges)
		} else {
			l.release(s)
			b.open = b.open[:len(b.open)-1]
		}
	}
	if len(b.open) > 0 {
		l.ask(ctx, b.open[0].scratch.lane, b.groups, true)
		for _, o := range b.open {
			l.finish(ctx, o.scratch, &decisions[o.at], true)
		}
	}
	if l.opts.Observer != nil {
		for i := range reqs {
			l.opts.Observer.Decided(ctx, reqs[i], decisions[i])
		}
	}
	return nil
}

func (l *Limiter) releaseBatch(b *batch) {
	for _, o := range b.open {
		l.release(o.scratch)
	}
	clear(b.open)
	clear(b.groups)
	b.open, b.groups = b.open[:0], b.groups[:0]
	l.batches.Put(b)
}
