package control

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/registry"
)

const (
	// leaseTime is how long the others wait for a relay that died. With the time until one of them asks it stays below five seconds.
	leaseTime     = 3 * time.Second
	campaignEvery = time.Second
	// yieldTime is how long a relay that cannot reach the database lets others try.
	yieldTime = 2 * time.Second
	// failuresAllowed in a row make a relay yield.
	failuresAllowed = 2
	// quiet is how long a burst of changes must pause to be read, patience the longest that it is waited for.
	quiet    = 20 * time.Millisecond
	patience = 100 * time.Millisecond
	// rereadEvery is how often the snapshot is read although the revision stayed, for rows that were changed by direct SQL.
	rereadEvery = time.Minute
	// queued is how many notices may wait to be sent. When there are more, one that any may have been missed is sent in their place.
	queued = 1024
	// sendAgain is how soon a notice that could not be sent is tried again. Sooner asks a Redis in trouble more often; later, the others have
	// found the change by looking.
	sendAgain = 250 * time.Millisecond
)

// runRelay makes this node the relay whenever nobody else is.
func (p *Plane) runRelay(ctx context.Context) {
	for ctx.Err() == nil {
		held, err := p.bus.campaign(ctx, p.id, leaseTime)
		if err != nil || !held {
			_ = sleep(ctx, jitter(campaignEvery))
			continue
		}
		r := &relay{db: p.db, bus: p.bus, id: p.id, plane: p, dirty: make(chan struct{}, 1), out: make(chan registry.Notice, queued)}
		p.opts.Log.Info("this node tells the others of changes in the database")
		err = r.serve(ctx)
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		_ = p.bus.resign(end, p.id) // else the lease runs out
		cancel()
		if ctx.Err() == nil {
			p.opts.Log.Warn("this node no longer tells the others of changes in the database", "error", err)
			_ = sleep(ctx, jitter(yieldTime))
		}
	}
}

// relay is one term of office.
type relay struct {
	db    Database
	bus   bus
	id    string
	plane *Plane // for its log only

	dirty chan struct{}        // rules may have changed
	out   chan registry.Notice // to be sent
	lost  atomic.Bool          // out was full
	gap   gap

	last   sealed // put into the bus last, without text
	readAt time.Time
}

var errLeaseLost = errors.New("another node has taken over")

// serve relays until the lease is lost or the database cannot be reached.
func (r *relay) serve(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer stop(nil)
	for _, part := range []func(context.Context) error{r.renew, r.listen, r.send, r.countNodes} {
		wait.Go(func() {
			if err := part(ctx); err != nil {
				stop(err)
			}
		})
	}
	if err := r.follow(ctx); ctx.Err() == nil {
		return err
	}
	return context.Cause(ctx)
}

// renew keeps the lease.
func (r *relay) renew(ctx context.Context) error {
	until := time.Now().Add(leaseTime)
	for ctx.Err() == nil {
		_ = sleep(ctx, leaseTime/3)
		asked := time.Now()
		held, err := r.bus.campaign(ctx, r.id, leaseTime)
		switch {
		case err == nil && held:
			until = asked.Add(leaseTime)
		case err == nil, time.Now().After(until):
			return errors.Join(errLeaseLost, err)
		}
	}
	return nil
}

// listen hears the database. It is allowed to fail: follow looks, too.
func (r *relay) listen(ctx context.Context) error {
	for ctx.Err() == nil {
		err := r.db.Listen(ctx, r.noticed)
		if ctx.Err() == nil {
			r.plane.opts.Log.Warn("the database's notices are not heard: looking every few seconds", "error", err)
			_ = sleep(ctx, jitter(time.Second))
		}
	}
	return nil
}

func (r *relay) noticed(n registry.Notice) {
	r.gap.noticed(n.Revision)
	if aboutRules(n) {
		poke(r.dirty) // told once the others can read it
		return
	}
	r.tell(n)
}

// tell queues a notice.
func (r *relay) tell(n registry.Notice) {
	select {
	case r.out <- n:
	default:
		r.lost.Store(true)
	}
}

// send sends what is queued. What cannot be sent is tried again: what waits too long behind it is made up for by one notice that says that
// something was lost.
func (r *relay) send(ctx context.Context) error {
	for {
		select {
		case n := <-r.out:
			if r.lost.Swap(false) {
				n = registry.Notice{Revision: n.Revision}
			}
			for r.bus.publish(ctx, n) != nil && sleep(ctx, jitter(sendAgain)) == nil {
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// follow reads the database's rules whenever they have changed.
func (r *relay) follow(ctx context.Context) error {
	failures, look := 0, r.read
	for {
		if err := look(ctx); err == nil {
			failures = 0
		} else if failures++; failures >= failuresAllowed || errors.Is(err, errLeaseLost) {
			return err
		}
		timer := time.NewTimer(jitter(pollEvery))
		select {
		case <-r.dirty:
			r.settle(ctx)
			look = r.read
		case <-timer.C:
			look = r.poll
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// settle waits for the end of a burst.
func (r *relay) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		timer := time.NewTimer(quiet)
		select {
		case <-r.dirty:
			timer.Stop()
		case <-timer.C:
			return
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// poll reads only where the revision is another.
func (r *relay) poll(ctx context.Context) error {
	short, cancel := context.WithTimeout(ctx, revisionTimeout)
	defer cancel()
	revision, err := r.db.Revision(short)
	if err != nil {
		return err
	}
	if r.gap.polled(revision, time.Now()) {
		r.tell(registry.Notice{Revision: revision})
	}
	if revision == r.last.revision && time.Since(r.readAt) < rereadEvery && r.kept(ctx) {
		return nil
	}
	return r.read(ctx)
}

// kept tells whether the bus has what was put last. A replica that was promoted may not; where nobody answers, renew notices.
func (r *relay) kept(ctx context.Context) bool {
	st, err := r.bus.state(ctx)
	return err != nil || st.revision == r.last.revision && st.digest == r.last.digest
}

// read hands the database's rules on.
func (r *relay) read(ctx context.Context) error {
	snap, err := r.db.Snapshot(ctx)
	if err != nil {
		return err
	}
	reread := time.Since(r.readAt) >= rereadEvery
	r.readAt = time.Now()
	s, err := seal(snap)
	if err != nil {
		// The database is well; what it holds is not. The others go on with what they have.
		r.plane.opts.Log.Error("the rules of the database are not handed on", "error", err)
		return nil
	}
	there, err := r.bus.state(ctx)
	if err == nil && s.revision < there.revision {
		r.plane.opts.Log.Error("the database is at an older revision than the nodes: was it restored? set sluice.revision beyond theirs",
			"revision", int64(s.revision), "in_force", int64(there.revision))
		return nil
	}
	before := r.last
	held, err := r.bus.put(ctx, r.id, s, s.digest == before.digest && !reread)
	if err != nil {
		r.last = sealed{}
		return nil //nolint:nilerr // not the database's fault: renew notices when Redis is away
	}
	if !held {
		return errLeaseLost
	}
	r.last = sealed{revision: s.revision, digest: s.digest}
	if before.digest == "" {
		r.gap.polled(s.revision, r.readAt) // what comes after this one must be told of
	}
	switch {
	case before.digest == "" && s.revision != there.revision: // nobody listened to what came between
		r.tell(registry.Notice{Revision: s.revision})
	case s.digest != before.digest || s.revision != before.revision:
		r.tell(registry.Notice{Revision: s.revision, Kind: registry.KindRule})
	}
	return nil
}

// countNodes copies heartbeats to the database. What fails is tried again.
func (r *relay) countNodes(ctx context.Context) error {
	var c census
	for sleep(ctx, pollEvery) == nil {
		beats, err := r.bus.beats(ctx)
		if err != nil {
			continue
		}
		alive, gone := c.look(beats)
		if len(alive) > 0 {
			_ = r.db.Heartbeat(ctx, alive)
		}
		if len(gone) > 0 {
			_ = r.bus.forget(ctx, gone)
		}
	}
	return nil
}
