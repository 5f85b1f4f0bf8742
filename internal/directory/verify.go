package directory

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/apikey"
	"github.com/sluicehq/sluice/internal/registry"
)

// Verify implements identity.KeyVerifier: it returns whom an API key belongs to. An id that was never handed out is refused without asking
// anybody. Whether an id is on record cannot be told by the time it takes: the same hashes are computed and the same number compared.
func (l *Live) Verify(_ context.Context, text string) (sluice.Subject, bool) {
	id, secret, ok := apikey.Parse(text)
	if !ok { // everybody knows the form
		return sluice.Subject{}, false
	}
	genuine := apikey.Genuine(l.opts.Pepper, id)
	hash := apikey.Hash(l.opts.Pepper, secret)
	r, now := l.keyRecord(id, genuine), l.opts.Now()
	if !apikey.Matches(r.key.valid(now), hash) || !genuine {
		return sluice.Subject{}, false
	}
	l.uses.add(id, now)
	return sluice.Subject{APIKey: id, User: r.key.owner, Tenant: r.key.tenant, Tier: r.tier}, true
}

// keyRecord returns what is on record about an API key, or a decoy where nothing is.
func (l *Live) keyRecord(id string, genuine bool) *record {
	n := l.cache.nameOf(apiKey, id)
	var r *record
	if genuine {
		var f *flight
		if r, f = l.known(l.keys, n, apiKey, id); f != nil {
			r = l.awaitKey(f, r)
		}
	} else {
		_, _ = l.cache.get(n) // as if
		_ = l.tick()
	}
	if r == nil || r.key == nil {
		r = l.decoys[n.hi%uint64(len(l.decoys))]
	}
	return r
}

// awaitKey returns the answer of a flight, or what was known before where none comes in time.
func (l *Live) awaitKey(f *flight, before *record) *record {
	if r := l.keys.wait(f, l.opts.KeyWait); r != nil {
		return r
	}
	l.stats.unanswered.Add(1)
	return before
}

// newDecoys makes records of keys that nobody has. There are many, because a single one would always be in the processor's cache, and
// be compared sooner than those on record.
func newDecoys() []*record {
	decoys := make([]*record, 512)
	for i := range decoys {
		hash := make([]byte, apikey.HashLength)
		_, _ = rand.Read(hash) // never fails
		decoys[i] = &record{key: &apiKeyOnRecord{hashes: [][]byte{hash}}}
	}
	return decoys
}

// uses gathers how often API keys are used.
type uses struct {
	dropped atomic.Int64

	mu  sync.Mutex
	new map[string]registry.Use
}

const (
	// maxUses bounds the API keys whose uses wait to be told. Beyond, uses of others are not counted.
	maxUses = 100_000
	// tellEvery is how often the database is told. Sooner, and a key in use is written all the time.
	tellEvery = 5 * time.Second
	// tellTimeout bounds one such call, also the last one while the node stops.
	tellTimeout = 2 * time.Second
	// maxTold is how many keys the database is told of at once.
	maxTold = 5000
)

func (u *uses) add(id string, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.merge(id, registry.Use{Count: 1, Last: now})
}

// merge adds to what is not told yet. The mutex is held.
func (u *uses) merge(id string, use registry.Use) {
	if u.new == nil {
		u.new = map[string]registry.Use{}
	}
	old, found := u.new[id]
	if !found && len(u.new) >= maxUses {
		u.dropped.Add(use.Count)
		return
	}
	if old.Last.After(use.Last) {
		use.Last = old.Last
	}
	use.Count += old.Count
	u.new[id] = use
}

// take returns some of what is not told yet.
func (u *uses) take() map[string]registry.Use {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.new) <= maxTold {
		taken := u.new
		u.new = nil
		return taken
	}
	taken := make(map[string]registry.Use, maxTold)
	for id, use := range u.new {
		if len(taken) == maxTold {
			break
		}
		taken[id] = use
		delete(u.new, id)
	}
	return taken
}

// giveBack keeps what could not be told for the next time, as far as there is room.
func (u *uses) giveBack(taken map[string]registry.Use) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for id, use := range taken {
		u.merge(id, use)
	}
}

// tellUses tells the database from time to time, and once more at the end.
func (l *Live) tellUses(ctx context.Context) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.tellNow(ctx)
		case <-ctx.Done():
			l.tellNow(context.WithoutCancel(ctx))
			return
		}
	}
}

func (l *Live) tellNow(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	for {
		taken := l.uses.take()
		if len(taken) == 0 {
			return
		}
		if err := l.db.AddUses(ctx, taken); err != nil {
			l.uses.giveBack(taken)
			l.opts.Log.Debug("uses of API keys could not be written", "keys", len(taken), "error", err)
			return
		}
	}
}
