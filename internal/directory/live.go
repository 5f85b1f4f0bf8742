package directory

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/registry"
)

// Database has the subjects on record.
type Database interface {
	// Records tells about several subjects, in their order.
	Records(ctx context.Context, whos []registry.Who) ([]registry.Record, error)
	// AddUses adds to the uses of API keys, by their ids.
	AddUses(ctx context.Context, uses map[string]registry.Use) error
}

// Live completes subjects by what the database has on record, and by a Directory. What it learned it keeps for a while, in memory of fixed
// size; behind that it asks Redis, which all nodes share, and behind that the database. It is safe for concurrent use.
//
// What is fresh is answered from memory. What is of some age is, too, and looked up in the background. What is older, or new, is waited
// for a moment; where no answer comes, the old one counts, and where there is none the subject is decided about as one on no record, and
// known a moment later. An API key is waited for longer, and without an answer it is none.
type Live struct {
	files  *Directory
	db     Database
	shared *Redis
	opts   LiveOptions
	began  time.Time

	cache          *cache
	shelf          shelf
	subjects, keys *lane
	decoys         []*record
	uses           uses
	distrust       distrust
	// before is the time up to which nothing that was learned is fresh.
	before atomic.Uint32

	stats liveStats
}

// LiveOptions tune a Live. Pepper is required where API keys are to be known.
type LiveOptions struct {
	// Pepper is the key of the hashes of API keys.
	Pepper string
	// Redis is asked before the database. Default: nobody is.
	Redis *Redis
	// Nodes is how many nodes are alive. One that is alone tells Redis nothing, and asks it nothing. Default: several.
	Nodes func() int
	// Entries is how many subjects are kept in memory, 32 bytes each, rounded up to a power of two. Default 524,288.
	Entries int
	// Bytes bounds what is kept beyond that: overrides, API keys, blocks. Default 32 MiB.
	Bytes int64
	// Wait is how long a request waits for what is on record about its subject. Default 10 ms.
	Wait time.Duration
	// KeyWait is how long a request waits for what is on record about its API key: for long, because a valid one that is
	// taken for none is worse than a slow answer. Default 500 ms.
	KeyWait time.Duration
	// Fresh is how long what was learned is used without a question. It is used for half as long again while it is asked for. Default 100 s.
	Fresh time.Duration
	// Log is told when the database stops answering, and when it answers again. Default: nobody.
	Log *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

func (o LiveOptions) withDefaults() LiveOptions {
	if o.Entries <= 0 {
		o.Entries = 1 << 19
	}
	if o.Bytes <= 0 {
		o.Bytes = 32 << 20
	}
	for _, d := range []struct {
		value    *time.Duration
		standard time.Duration
	}{{&o.Wait, 10 * time.Millisecond}, {&o.KeyWait, 500 * time.Millisecond}, {&o.Fresh, 100 * time.Second}} {
		if *d.value <= 0 {
			*d.value = d.standard
		}
	}
	if o.Nodes == nil {
		o.Nodes = func() int { return 2 }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// keyPace is that of questions about API keys. One on no record is a fault or an attack: it may cost ten questions a second and no more.
var keyPace = pace{least: 2 * time.Millisecond, most: 115 * time.Millisecond}

// subjectPace is that of questions about subjects, to be on no record being common. Sooner after each other they cost the database
// more for being asked than for being answered; later, requests would wait for too long. The first after a pause is never held up.
func subjectPace(wait time.Duration) pace {
	gap := min(wait/2, 20*time.Millisecond)
	return pace{least: gap, most: gap}
}

// NewLive returns a directory of the database, on top of one of files. Nothing is asked before Run.
func NewLive(files *Directory, db Database, opts LiveOptions) *Live {
	opts = opts.withDefaults()
	l := &Live{files: files, db: db, shared: opts.Redis, opts: opts, began: opts.Now(), cache: newCache(opts.Entries, opts.Bytes), decoys: newDecoys()}
	l.subjects = newLane(subjectPace(opts.Wait), opts.Now, l.lookUp, l.keep)
	l.keys = newLane(keyPace, opts.Now, l.lookUp, l.keep)
	l.subjects.told, l.keys.told = l.share, l.share
	return l
}

// Run looks subjects up, and tells the database how API keys are used, until ctx ends. It always returns nil.
func (l *Live) Run(ctx context.Context) error {
	var parts sync.WaitGroup
	for _, run := range []func(context.Context){l.subjects.run, l.keys.run, l.tellUses, l.shared.run} {
		parts.Go(func() { run(ctx) })
	}
	parts.Wait()
	return nil
}

// Fill implements engine.Directory. It waits for at most LiveOptions.Wait.
func (l *Live) Fill(namespace string, subject *sluice.Subject) {
	var found [dimensions]*record
	var waiting [dimensions]*flight
	missing := false
	for d, id := range names(subject) {
		if id != "" {
			d := dimension(d)
			found[d], waiting[d] = l.known(l.subjects, l.cache.nameOf(d, id), d, id)
			missing = missing || waiting[d] != nil
		}
	}
	for d, f := range waiting {
		if !missing {
			break
		}
		if r := l.subjects.wait(f, l.opts.Wait); r != nil {
			found[d] = r
		} else if f != nil {
			l.stats.unanswered.Add(1)
		}
	}
	l.files.fill(namespace, subject, found)
}

// Expect begins to look a subject up for whom Fill will be called soon, so that many of them are waited for together.
func (l *Live) Expect(subject *sluice.Subject) {
	for d, id := range names(subject) {
		if id != "" {
			d := dimension(d)
			_, _ = l.known(l.subjects, l.cache.nameOf(d, id), d, id)
		}
	}
}

func names(s *sluice.Subject) [dimensions]string {
	return [dimensions]string{apiKey: s.APIKey, user: s.User, tenant: s.Tenant}
}

// known returns what is in memory about a name, and a flight when that is not enough.
func (l *Live) known(lane *lane, n name, d dimension, id string) (*record, *flight) {
	r, loaded := l.cache.get(n)
	if r == nil {
		l.stats.misses.Add(1)
		return nil, lane.join(n, d, id)
	}
	now, fresh := l.tick(), tick(l.opts.Fresh/tickLength)
	age := now - loaded + tick(n.hi%uint64(1+fresh/4)) // so that those who were learned together are not asked for together
	switch {
	case uint32(loaded) < l.before.Load() || age >= fresh+fresh/2:
		return r, lane.join(n, d, id)
	case age >= fresh:
		lane.join(n, d, id)
	}
	return r, nil
}

// tickLength is that of a tick: 32 bits of them last for 13 years.
const tickLength = 100 * time.Millisecond

func (l *Live) tick() tick { return tick(l.opts.Now().Sub(l.began) / tickLength) }

// keep remembers an answer.
func (l *Live) keep(f *flight) { l.cache.put(f.name, f.record, l.tick()) }

// Notice acts on a notice of a change, a zero one being that of changes that nobody heard of. It does not block.
func (l *Live) Notice(n registry.Notice) {
	switch n.Kind {
	case registry.KindSubject, registry.KindOverride, registry.KindKey, registry.KindBlock, registry.KindExemption:
		if n.Who != (registry.Who{}) {
			l.Invalidate(n.Who)
			return
		}
	case "":
	default: // rules and tiers are the feed's, tokens are not ours
		return
	}
	l.InvalidateAll()
}

// Invalidate forgets what was learned about a subject, because it changed: here and in Redis.
func (l *Live) Invalidate(who registry.Who) {
	for d := range dimensions {
		if d.String() != who.Dimension {
			continue
		}
		n := l.cache.nameOf(d, who.ID)
		l.distrust.add(n, l.opts.Now())
		l.subjects.spoil(&n)
		l.keys.spoil(&n)
		l.cache.drop(n)
		l.shared.bury(who)
	}
}

// InvalidateAll takes everything that was learned for old, because changes may have been missed. It is asked for again when needed, and used
// only where no answer comes.
func (l *Live) InvalidateAll() {
	l.distrust.all(l.opts.Now())
	l.before.Store(uint32(l.tick()) + 1)
	l.subjects.spoil(nil)
	l.keys.spoil(nil)
}
