package redisstore

import (
	"context"
	"slices"
	"sync"
	"time"
)

// sharer lets callers share what is sent to one Redis master: on a server of its own several decisions go in one script
// call; on a shard of a Cluster, where a script may touch one slot only, several calls go in one pipeline. A caller who
// finds few enough of them under way sends his own ticket at once; otherwise he queues, and whoever's call returns wakes
// the next leader, who sends all that has gathered meanwhile. There is no timer and no goroutine: nobody waits for
// company.
type sharer struct {
	conn  Conn
	merge bool // into one script call

	mu    sync.Mutex
	queue []*ticket // waiting, oldest first
	idle  []*flight // not under way
}

// How much is under way at once. With one call Redis idles while a reply travels; more than two make shared calls
// smaller, which costs more than it gains. Pipelines gain less by size: with two, a shard of a Cluster was idle at
// times, and with four make bar-engine showed a tenth more.
const (
	maxMergedFlights = 2
	maxPipelines     = 4
)

// flight is what is sent at once. It passes from leader to leader.
type flight struct {
	tickets []*ticket // the leader's is the last
	calls   []*Call   // the merged call, or one of each ticket
	merged  Call
	args    arguments

	ctx      context.Context //nolint:containedctx // of one call at a time; see until
	cancel   context.CancelFunc
	deadline time.Time
}

func newSharer(conn Conn, merge bool) *sharer {
	s := &sharer{conn: conn, merge: merge}
	flights := maxPipelines
	if merge {
		flights = maxMergedFlights
	}
	for range flights {
		s.idle = append(s.idle, new(flight))
	}
	return s
}

// do answers the ticket by a shared call, or returns why it could not. After an error the ticket may still be in use.
func (s *sharer) do(ctx context.Context, t *ticket) error {
	t.deadline, _ = ctx.Deadline()
	s.mu.Lock()
	s.queue = append(s.queue, t)
	t.queued = true
	if n := len(s.idle); n > 0 { // then nobody else is waiting
		f := s.idle[n-1]
		s.idle = s.idle[:n-1]
		s.board(f)
		s.mu.Unlock()
		s.lead(ctx, f)
		return t.err
	}
	s.mu.Unlock()

	select {
	case <-t.wake:
	case <-ctx.Done():
		s.leave(t)
		return unavailable(context.Cause(ctx))
	}
	if t.flight != nil {
		if ctx.Err() != nil { // woken to lead at the very end
			s.leave(t)
			return unavailable(context.Cause(ctx))
		}
		s.lead(ctx, t.flight)
	}
	return t.err
}

// board moves the oldest tickets from the queue to a flight. The one whose caller has the most time left will lead, so
// that nobody's call ends by another's deadline; it goes to the end. The mutex is held.
func (s *sharer) board(f *flight) {
	n, charges := 0, 0
	for n < len(s.queue) && n < maxGroups && (n == 0 || charges+len(s.queue[n].items) <= maxCharges) {
		charges += len(s.queue[n].items)
		n++
	}
	f.tickets = append(f.tickets[:0], s.queue[:n]...)
	s.queue = slices.Delete(s.queue, 0, n)
	last := n - 1
	for i, t := range f.tickets {
		t.queued = false
		if t.outlasts(f.tickets[last]) {
			last = i
		}
	}
	f.tickets[last], f.tickets[n-1] = f.tickets[n-1], f.tickets[last]
}

func (t *ticket) outlasts(o *ticket) bool {
	return !o.deadline.IsZero() && (t.deadline.IsZero() || t.deadline.After(o.deadline))
}

// launch lets the next leader send what waits, or parks the flight. The mutex is held.
func (s *sharer) launch(f *flight) {
	if len(s.queue) == 0 {
		s.idle = append(s.idle, f)
		return
	}
	s.board(f)
	leader := f.tickets[len(f.tickets)-1]
	leader.flight = f
	leader.wake <- struct{}{} // has room: a ticket is woken once
}

// lead sends a flight, answers its tickets, wakes their callers and lets the next one go.
func (s *sharer) lead(ctx context.Context, f *flight) {
	f.fill(s.merge)
	if len(f.tickets) > 1 { // should the leader hang up, the others still get their answers
		ctx = f.until(ctx)
	}
	s.conn.Run(ctx, f.calls)
	leader := f.tickets[len(f.tickets)-1]
	first := 0
	for i, t := range f.tickets {
		n := len(t.items) // t is its caller's again once woken
		if s.merge {
			t.receive(f.calls[0], first)
		} else {
			t.receive(f.calls[i], 0)
		}
		first += n
		if t != leader {
			t.wake <- struct{}{}
		}
	}
	if f.merged.Err != nil { // the client may still hold these
		f.merged, f.args = Call{}, arguments{}
	}
	clear(f.tickets)
	clear(f.calls)

	s.mu.Lock()
	leader.flight = nil
	s.launch(f)
	s.mu.Unlock()
}

// until returns a context that ends by the leader's deadline alone. Leaders of one moment mostly have the same one.
func (f *flight) until(ctx context.Context) context.Context {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return context.Background()
	}
	if f.cancel == nil || !f.deadline.Equal(deadline) {
		if f.cancel != nil {
			f.cancel()
		}
		f.deadline = deadline
		f.ctx, f.cancel = context.WithDeadline(context.Background(), deadline) // ends by the next call, or by itself
	}
	return f.ctx
}

// fill makes the calls: each ticket's own, or one for all.
func (f *flight) fill(merge bool) {
	f.calls = f.calls[:0]
	if !merge || len(f.tickets) == 1 {
		for _, t := range f.tickets {
			t.prepare(scriptTake)
			f.calls = append(f.calls, &t.call)
		}
		return
	}
	f.calls = append(f.calls, &f.merged)
	f.args.begin(&f.merged, scriptTake)
	for _, t := range f.tickets {
		t.addTo(&f.args, &f.merged)
	}
	f.args.end(&f.merged)
}

// leave takes a ticket whose caller has given up out of the queue. One already under way stays there, charged or not:
// nobody will know. One chosen to lead hands the flight on.
func (s *sharer) leave(t *ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch f := t.flight; {
	case t.queued:
		i := slices.Index(s.queue, t)
		s.queue = slices.Delete(s.queue, i, i+1)
	case f != nil:
		t.flight = nil
		passengers := slices.DeleteFunc(f.tickets[:len(f.tickets)-1], func(p *ticket) bool { return p.gone })
		for _, p := range passengers {
			p.queued = true
		}
		s.queue = slices.Insert(s.queue, 0, passengers...)
		s.launch(f)
	default:
		t.gone = true // so that it is not queued again and chosen to lead, which nobody would hear
	}
}
