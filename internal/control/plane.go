// Package control brings what the database holds to every node, without every node asking the database.
//
// One node at a time is the relay: it listens for changes, reads a snapshot of all rules, puts it into Redis and tells the others. All nodes,
// the relay included, take the snapshot from Redis: a notice is a hint to look at once, a look at the revision every two seconds is the
// truth. Where nobody relays, because Redis is away or no node reaches the database, nodes look at the database themselves, rarely. The last
// snapshot is also kept on disk, for a start while everything else is away.
package control

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
	"github.com/sluicehq/sluice/internal/rulefeed"
)

// ErrNoRules means that nothing was heard of the database's rules yet, from anywhere.
var ErrNoRules = errors.New("no rules yet: neither the database nor Redis answered, and there is no snapshot on disk")

// Database is what nodes ask of it.
type Database interface {
	Snapshot(ctx context.Context) (registry.Snapshot, error)
	Revision(ctx context.Context) (sluice.Revision, error)
	// Listen calls fn for every change until it fails, first with a zero notice.
	Listen(ctx context.Context, fn func(registry.Notice)) error
	Heartbeat(ctx context.Context, nodes []registry.Node) error
}

// Options say how a node takes part. Node is required.
type Options struct {
	// Node names this one in heartbeats. No two may have the same name.
	Node string
	// Version is told in heartbeats.
	Version string
	// Redis is how the others are reached. Default: there are none.
	Redis *rueidis.ClientOption
	// SnapshotFile keeps the last snapshot on disk. Default: nothing does.
	SnapshotFile string
	// Taken tells the revision of the rules that the node goes by. Default: those that were last found.
	Taken func() sluice.Revision
	// OnNotice is told of changes; a zero notice means that any may have been missed. It must not block. Default: nobody is.
	OnNotice func(registry.Notice)
	// Log is told of what an operator should know. Default: nobody is.
	Log *slog.Logger
}

// Plane is a node's part. It is a rulefeed.Source. First and Run are for one goroutine, one after the other; the rest is for any.
type Plane struct {
	db   *noted
	bus  bus
	opts Options
	id   string // of this process, for the lease
	file *file

	held    atomic.Pointer[holding]
	hint    chan struct{} // something may be new
	changed chan struct{} // held has other rules
	gap     gap
	hangUp  atomic.Pointer[context.CancelFunc] // ends the subscription to notices; another follows
	unheard atomic.Bool                        // the last beat failed

	// What the goroutine of First and Run knows.
	nextDirect time.Time
	backwards  sluice.Revision // told of in the log

	mu      sync.Mutex
	contact time.Time // when something was heard last
	trouble error     // why nothing is heard; nil: something is
}

// holding is the rules that were found last.
type holding struct {
	snapshot registry.Snapshot
	revision sluice.Revision // may be newer than that of the snapshot, where nothing in it changed
	digest   string
	refused  error // why rules of a namespace were not taken; nil: all were
}

// New returns a node's part. It asks nobody anything yet.
func New(db Database, id string, opts Options) *Plane {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.OnNotice == nil {
		opts.OnNotice = func(registry.Notice) {}
	}
	p := &Plane{opts: opts, id: id, file: newFile(opts.SnapshotFile), hint: make(chan struct{}, 1), changed: make(chan struct{}, 1)}
	p.db = &noted{Database: db, tell: p.tellContact}
	if opts.Taken == nil {
		p.opts.Taken = p.Revision
	}
	if opts.Redis != nil {
		p.bus = newRedisBus(*opts.Redis)
	} else {
		p.bus = newAlone()
	}
	return p
}

// Close lets go of Redis. It is for after Run, or instead of it.
func (p *Plane) Close() { p.bus.close() }

// Run takes part until ctx ends.
func (p *Plane) Run(ctx context.Context) error {
	var wait sync.WaitGroup
	for _, part := range []func(context.Context){p.runWatch, p.runNotices, p.runRelay, p.runBeats, p.runDirectBeats, p.runFile} {
		wait.Go(func() { part(ctx) })
	}
	wait.Wait()
	return ctx.Err()
}

// Snapshot implements rulefeed.Source. It asks nobody: Run keeps what is returned current.
func (p *Plane) Snapshot(context.Context) (rulefeed.Snapshot, error) {
	h := p.held.Load()
	if h == nil {
		return rulefeed.Snapshot{}, ErrNoRules
	}
	text := textOf(h.snapshot)
	if h.refused != nil {
		text.Faults = append(text.Faults, ruledoc.Fault{File: origin, Err: h.refused})
	}
	return rulefeed.Snapshot{Revision: h.revision, Texts: []rulefeed.Text{text}}, nil
}

// Wait implements rulefeed.Source.
func (p *Plane) Wait(ctx context.Context) error {
	select {
	case <-p.changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Revision is the newest that was heard of; 0: none.
func (p *Plane) Revision() sluice.Revision {
	if h := p.held.Load(); h != nil {
		return h.revision
	}
	return 0
}

// serving is the newest revision whose rules the node goes by.
func (p *Plane) serving() sluice.Revision {
	h, taken := p.held.Load(), p.opts.Taken()
	if h != nil && taken >= h.snapshot.Revision { // later ones left the rules as they are
		return h.revision
	}
	return taken
}

// staleAfter is how long nothing may be heard before the rules may be old. Shorter, and a Redis that is started again looks like trouble.
const staleAfter = 10 * time.Second

// Trouble tells why the rules may not be the newest; nil: they are, but for the last seconds.
func (p *Plane) Trouble() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trouble != nil && time.Since(p.contact) > staleAfter {
		return p.trouble
	}
	return nil
}

// heard notes whether somebody could be asked.
func (p *Plane) heard(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trouble = err
	if err == nil {
		p.contact = time.Now()
	}
}

// poke makes a channel of one hold a signal.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// jitter is d give or take a quarter, so that nodes that started together do not ask together.
func jitter(d time.Duration) time.Duration {
	return d*3/4 + rand.N(d/2) //nolint:gosec // spreads load, guards nothing
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
