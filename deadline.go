package sluice

import (
	"context"
	"sync/atomic"
	"time"
)

// deadlines bounds decisions in time without a context of its own for each, which would cost more than all else a
// decision does in this process. Decisions that begin within the same eighth of the timeout share one, so each has
// between seven eighths and all of the timeout.
//
// A shared context cannot carry a caller's cancellation. Nobody waits for it: the decision is over within the timeout.
type deadlines struct {
	timeout time.Duration // negative: none
	shared  [deadlineLanes]atomic.Pointer[sharedDeadline]
	lanes   atomic.Uint32 // handed out so far
}

// deadlineLanes spreads callers over several contexts: all that wait for one lock the same channel. More lanes make
// more contexts in a quiet process.
const deadlineLanes = 16

// lane returns the next lane.
func (d *deadlines) lane() uint32 { return d.lanes.Add(1) % deadlineLanes }

type sharedDeadline struct {
	ctx     context.Context    //nolint:containedctx // shared by many calls; it ends by itself
	cancel  context.CancelFunc // never called: the deadline releases the context
	expires time.Time
	until   time.Time // decisions that begin later need another
}

// bound returns a context that ends when the decision must.
func (d *deadlines) bound(ctx context.Context, lane uint32) context.Context {
	if d.timeout < 0 {
		return ctx
	}
	now := time.Now()
	s := d.shared[lane].Load()
	if s == nil || !now.Before(s.until) {
		s = &sharedDeadline{expires: now.Add(d.timeout), until: now.Add(d.timeout / 8)}
		s.ctx, s.cancel = context.WithDeadline(context.Background(), s.expires) //nolint:gosec // G118: see cancel
		d.shared[lane].Store(s)
	}
	if own, ok := ctx.Deadline(); ok && own.Before(s.expires) {
		return ctx
	}
	return s.ctx
}
