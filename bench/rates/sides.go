package main

import (
	"context"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/algo"
	"github.com/sluicehq/sluice/internal/testredis"
)

// twin is the Go arithmetic.
type twin struct {
	value int64
	has   bool
	limit sluice.Limit
	plan  algo.Plan
}

func (t *twin) take(limit sluice.Limit, us, cost int64) (allowed bool, wait int64, err error) {
	if limit != t.limit {
		t.limit = limit
		t.plan = algo.NewTokenBucket(limit.Limit, limit.Window.Microseconds(), limit.Capacity(), 0)
	}
	x := t.plan.Cost(cost)
	out := t.plan.Take(t.value, t.has, us, x)
	a := t.plan.Answer(out.Reply, x, us)
	if a.Allowed {
		t.value, t.has = out.Next, true
	}
	return a.Allowed, a.Retry, nil
}

// lua is the script on a real Redis whose clock is moved. Expiry moves along.
type lua struct {
	store sluice.Store
	clock *testredis.Clock
	name  string
	ctx   context.Context //nolint:containedctx // a program's own
	group [1]sluice.Charge
}

func (l *lua) take(limit sluice.Limit, us, cost int64) (allowed bool, wait int64, err error) {
	l.clock.Freeze(time.UnixMicro(us))
	l.group[0] = sluice.Charge{Key: sluice.Key{Namespace: "rates", Rule: l.name}, Limit: limit, Cost: cost}
	l.store.Take(l.ctx, [][]sluice.Charge{l.group[:]})
	s := l.group[0].State
	return s.Allowed, s.RetryAfter.Microseconds(), s.Err
}
