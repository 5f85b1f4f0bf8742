package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/registry"
)

const (
	// pollEvery is how long a change goes unnoticed when its notice is lost, give or take a quarter. More often costs Redis a call per node.
	pollEvery = 2 * time.Second
	// directEvery is how often a node looks at the database itself where nobody relays. With the quarter it stays below five seconds; a
	// thousand nodes are then 250 short queries a second.
	directEvery = 4 * time.Second
	// emptyEvery is the same for a node that has no rules at all.
	emptyEvery = time.Second
	// firstTimeout bounds each place that First asks, where there is another to fall back to.
	firstTimeout = 500 * time.Millisecond
)

// First looks for rules in the order in which they are likely to be current: those that a relay keeps in Redis, the database, what Redis
// has from earlier, the disk. It takes at most about a second, and returns ErrNoRules where nothing was found: Run goes on looking.
func (p *Plane) First(ctx context.Context) error {
	bound, cancel := context.WithTimeout(ctx, firstTimeout)
	defer cancel()
	copied, snap, relayed := p.copied(bound)
	if snap != nil && relayed {
		p.take(copied, *snap, "redis")
		p.heard(nil)
		return nil
	}
	bound, cancel = context.WithTimeout(ctx, firstTimeout)
	defer cancel()
	err := p.fromDatabase(bound)
	p.heard(err)
	if err == nil {
		return nil
	}
	stored, old, fileErr := p.file.load()
	if fileErr != nil && !errors.Is(fileErr, os.ErrNotExist) {
		p.opts.Log.Error("the snapshot on disk cannot be used", "error", fileErr)
	}
	from := "redis"
	if fileErr == nil && (snap == nil || stored.revision > copied.revision) {
		copied, snap, from = stored, &old, "disk"
	}
	if snap == nil {
		return fmt.Errorf("%w: %w", ErrNoRules, err)
	}
	p.take(copied, *snap, from)
	p.opts.Log.Warn("the database does not answer: starting with the last rules known", "from", from, "revision", int64(copied.revision), "error", err)
	return nil
}

// copied is what Redis has, and whether a relay keeps it current.
func (p *Plane) copied(ctx context.Context) (s sealed, snap *registry.Snapshot, relayed bool) {
	st, err := p.bus.state(ctx)
	if err != nil || st.digest == "" {
		return sealed{}, nil, false
	}
	text, err := p.bus.fetch(ctx)
	if err != nil || len(text) == 0 {
		return sealed{}, nil, false
	}
	s, found, err := open(text)
	if err != nil {
		return sealed{}, nil, false
	}
	return s, &found, st.relayed
}

// runWatch keeps held current.
func (p *Plane) runWatch(ctx context.Context) {
	for ctx.Err() == nil {
		p.look(ctx)
		timer := time.NewTimer(jitter(pollEvery))
		select {
		case <-p.hint:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// look takes over what is new.
func (p *Plane) look(ctx context.Context) {
	st, err := p.bus.state(ctx)
	if err == nil && st.digest != "" {
		err = p.fromBus(ctx, st)
	}
	if err == nil && st.digest != "" && st.relayed {
		if p.gap.polled(st.revision, time.Now()) {
			p.missed()
		}
		p.heard(nil)
		return
	}
	if time.Now().Before(p.nextDirect) || ctx.Err() != nil {
		return
	}
	p.nextDirect = time.Now().Add(jitter(directEvery))
	if p.held.Load() == nil {
		p.nextDirect = time.Now().Add(jitter(emptyEvery))
	}
	before := p.Revision()
	direct := p.fromDatabase(ctx)
	if direct == nil && p.Revision() != before {
		p.opts.OnNotice(registry.Notice{}) // nobody tells which
	}
	if direct != nil {
		direct = errors.Join(direct, err)
	}
	if ctx.Err() == nil {
		p.heard(direct)
	}
}

// fromBus takes over what the bus has.
func (p *Plane) fromBus(ctx context.Context, st state) error {
	h := p.held.Load()
	if h != nil && (st.digest == h.digest || st.revision < h.revision) {
		p.take(sealed{revision: st.revision, digest: st.digest}, h.snapshot, "redis")
		return nil
	}
	text, err := p.bus.fetch(ctx)
	if err != nil {
		return err
	}
	s, snap, err := open(text)
	if err != nil {
		p.opts.Log.Error("the snapshot in Redis cannot be used: the rules in force go on", "error", err)
		return err
	}
	p.take(s, snap, "redis")
	return nil
}

// revisionTimeout bounds the question for the revision, which a healthy database answers in a millisecond.
const revisionTimeout = 2 * time.Second

// fromDatabase takes over what the database has.
func (p *Plane) fromDatabase(ctx context.Context) error {
	if h := p.held.Load(); h != nil {
		short, cancel := context.WithTimeout(ctx, revisionTimeout)
		defer cancel()
		revision, err := p.db.Revision(short)
		if err != nil || revision == h.revision {
			return err
		}
	}
	snap, err := p.db.Snapshot(ctx)
	if err != nil {
		return err
	}
	s, err := seal(snap)
	if err != nil {
		return err
	}
	// As others get it: without the entries that were too long.
	s, snap, err = open(s.text)
	if err == nil {
		p.take(s, snap, "database")
	}
	return err
}

// take puts a snapshot in the place of the one before. One of a lower revision is never taken: nodes would disagree about which is newer.
func (p *Plane) take(s sealed, snap registry.Snapshot, from string) {
	old := p.held.Load()
	if old != nil && s.revision < old.revision {
		if p.backwards != s.revision {
			p.backwards = s.revision
			p.opts.Log.Error("the revision went back and is not followed: was the database restored? set sluice.revision beyond the one in force",
				"from", from, "revision", int64(s.revision), "in_force", int64(old.revision))
		}
		return
	}
	if old != nil && s.digest == old.digest {
		if s.revision > old.revision {
			next := *old
			next.revision = s.revision
			p.held.Store(&next)
		}
		return
	}
	var refused error
	if old != nil {
		if snap, refused = bounded(snap, old.snapshot); refused != nil {
			p.opts.Log.Error("rules of the database are not taken: those in force go on", "error", refused)
		}
	}
	p.held.Store(&holding{snapshot: snap, revision: s.revision, digest: s.digest, refused: refused})
	poke(p.changed)
	if from != "disk" {
		p.file.keep(s)
	}
}

// runFile keeps the last snapshot on disk.
func (p *Plane) runFile(ctx context.Context) {
	p.file.run(ctx, func(err error) {
		if err != nil {
			p.opts.Log.Error("the snapshot was not written: a start without the database would be without these rules", "error", err)
		}
	})
}

// runNotices hears what the relay tells.
func (p *Plane) runNotices(ctx context.Context) {
	for ctx.Err() == nil {
		hearing, stop := context.WithCancel(ctx)
		p.hangUp.Store(&stop)
		err := p.bus.subscribe(hearing, p.noticed)
		stop()
		if ctx.Err() == nil {
			p.opts.Log.Debug("notices are not heard: looking every few seconds", "error", err)
			_ = sleep(ctx, jitter(time.Second))
		}
	}
}

// missed acts on notices that were not heard. The connection may be one on which none will be: to a server that left its Cluster.
func (p *Plane) missed() {
	p.opts.OnNotice(registry.Notice{})
	if stop := p.hangUp.Load(); stop != nil {
		(*stop)()
	}
}

func (p *Plane) noticed(n registry.Notice) {
	p.gap.noticed(n.Revision)
	if aboutRules(n) {
		poke(p.hint)
	}
	p.opts.OnNotice(n)
}

// aboutRules tells that a change may concern what nodes keep in memory.
func aboutRules(n registry.Notice) bool {
	switch n.Kind {
	case "", registry.KindRule, registry.KindTier, registry.KindNamespace:
		return true
	case registry.KindBlock, registry.KindExemption:
		return n.Who.Dimension == string(sluice.IP)
	}
	return false
}

// gap finds out that notices were missed: a revision that was polled and of which no notice came within a second.
type gap struct {
	mu      sync.Mutex
	told    sluice.Revision
	seen    sluice.Revision
	since   time.Time // when seen was polled first
	started bool
}

// noticeGrace is how long a notice may come after the poll that found its revision.
const noticeGrace = time.Second

func (g *gap) noticed(r sluice.Revision) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.told = max(g.told, r)
}

// polled notes a revision, and tells whether a notice of an earlier one was missed.
func (g *gap) polled(r sluice.Revision, now time.Time) (missed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.started { // what was before the first look is nobody's loss
		g.started, g.told = true, max(g.told, r)
	}
	if g.seen > g.told && now.Sub(g.since) >= noticeGrace {
		missed, g.told = true, g.seen
	}
	if r > g.seen {
		g.seen, g.since = r, now
	}
	return missed
}
