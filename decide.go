package sluice

import (
	"context"
	"time"
)

// decide is the one path of every decision: match, charge, fall back where the store failed, fold. It fills d, which
// is large enough that copying it would show.
func (l *Limiter) decide(ctx context.Context, req *Request, d *Decision, charge bool) error {
	s := l.scratch.Get().(*scratch)
	defer l.release(s)
	if open, err := l.begin(ctx, l.rules.Load(), req, d, s); !open {
		return err
	}
	s.groups[0] = s.charges
	l.ask(ctx, s.lane, s.groups[:], charge)
	l.finish(ctx, s, d, charge)
	return nil
}

// begin answers what needs no store. Where it returns true, the charges to take are in s.
func (l *Limiter) begin(ctx context.Context, rules *RuleSet, req *Request, d *Decision, s *scratch) (open bool, err error) {
	d.ID, d.Cost = l.newID(), max(req.Cost, 1)
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if req.Cost < 0 {
		return false, ErrInvalidRequest
	}
	d.Revision = rules.Revision()
	if l.decidedBySubject(d, &req.Subject) {
		return false, nil
	}
	s.match(rules, req)
	if s.block != nil {
		d.Cause, d.RetryAfter = BlockedByRule, s.block.Response.RetryAfter
		if d.RetryAfter == 0 {
			d.RetryAfter = Never
		}
		d.add(Result{Rule: s.block, RetryAfter: d.RetryAfter})
		return false, nil
	}
	if len(s.charges) == 0 {
		d.Allowed, d.Cause = true, NoRule
		return false, nil
	}
	if req.Cost == 0 {
		d.Cost = s.charges[0].Cost
	}
	return true, nil
}

// finish makes the decision of what the store answered, or did not.
func (l *Limiter) finish(ctx context.Context, s *scratch, d *Decision, charge bool) {
	if err := s.storeErr(); err != nil {
		d.StoreErr = err
		l.fallBack(ctx, s, charge)
	}
	s.fold(d)
}

// decidedBySubject answers without rules: switched off, blocked, exempt.
func (l *Limiter) decidedBySubject(d *Decision, subject *Subject) bool {
	switch {
	case l.off.Load():
		d.Allowed, d.Cause = true, Disabled
	case subject.Blocked != nil && (subject.Blocked.Until.IsZero() || l.opts.Now().Before(subject.Blocked.Until)):
		d.Cause, d.blocked, d.RetryAfter = BlockedByList, subject.Blocked, Never
		if !subject.Blocked.Until.IsZero() {
			d.RetryAfter = subject.Blocked.Until.Sub(l.opts.Now())
		}
	case subject.Exempt:
		d.Allowed, d.Cause = true, Exempted
	default:
		return false
	}
	return true
}

func (l *Limiter) ask(ctx context.Context, lane uint32, groups [][]Charge, charge bool) {
	ctx = l.deadlines.bound(ctx, lane)
	if charge {
		l.store.Take(ctx, groups)
	} else {
		l.store.Peek(ctx, groups)
	}
}

// fallBack answers the charges that have no answer, each as its rule wants. What the store took of the group is given
// back when the group is refused after all.
func (l *Limiter) fallBack(ctx context.Context, s *scratch, charge bool) {
	refused := false
	var local []int
	for i := range s.charges {
		c := &s.charges[i]
		if c.State.Err != nil {
			switch s.owners[i].Rule.OnStoreError {
			case FallClosed:
				c.State = State{Mode: Closed, RetryAfter: closedRetry}
			case FallLocal:
				if l.opts.Fallback != nil {
					local = append(local, i)
					continue
				}
				fallthrough
			case FallOpen:
				c.State = State{Allowed: true, Mode: Open, Remaining: c.Limit.Capacity()}
			}
		}
		refused = refused || !c.State.Allowed && !c.Shadow
	}
	if len(local) > 0 && l.askFallback(ctx, s, local, charge && !refused) {
		refused = true
	}
	if refused && charge {
		l.giveBack(ctx, s.charges)
	}
}

// closedRetry is when to come back after a refusal for want of a store: nobody knows, a second is polite.
const closedRetry = time.Second

// askFallback takes this node's share of the limits and tells whether one refused.
func (l *Limiter) askFallback(ctx context.Context, s *scratch, local []int, charge bool) (refused bool) {
	nodes := int64(max(l.opts.Nodes(), 1))
	group := make([]Charge, len(local))
	for i, at := range local {
		group[i] = s.charges[at]
		group[i].Limit = group[i].Limit.shared(nodes)
	}
	groups := [][]Charge{group}
	if charge {
		l.opts.Fallback.Take(ctx, groups)
	} else {
		l.opts.Fallback.Peek(ctx, groups)
	}
	for i, at := range local {
		c := &s.charges[at]
		c.State = group[i].State
		c.State.Mode, c.State.Receipt = Local, Receipt{}
		if c.State.Err != nil { // a fallback that fails, too, leaves nothing to decide by
			c.State = State{Allowed: true, Mode: Open, Remaining: c.Limit.Capacity()}
		}
		refused = refused || !c.State.Allowed && !c.Shadow
	}
	return refused
}

// shared is one node's share of a limit. At least one unit: a node that admitted nothing would refuse its clients
// for good.
func (l Limit) shared(nodes int64) Limit {
	if l.Algorithm == TokenBucket {
		l.Burst = max(l.Capacity()/nodes, 1)
	}
	l.Limit = max(l.Limit/nodes, 1)
	return l
}

// giveBack returns what the store took of a group that was refused. It outlives the decision's deadline, briefly: what
// it fails to return is under-admission only.
func (l *Limiter) giveBack(ctx context.Context, charges []Charge) {
	for i := range charges {
		if charges[i].State.Receipt != (Receipt{}) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(l.opts.Timeout, time.Millisecond))
			defer cancel()
			states := make([]State, len(charges))
			for i := range charges {
				states[i] = charges[i].State
			}
			l.store.Give(ctx, charges)
			for i := range charges { // Give's own errors change nothing about the answer
				charges[i].State = states[i]
				charges[i].State.Receipt = Receipt{}
			}
			return
		}
	}
}
