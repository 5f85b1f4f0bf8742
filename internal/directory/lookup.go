package directory

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/registry"
)

// liveStats count what a Live does.
type liveStats struct {
	misses, questions, fromRedis, fromDatabase, failures, unanswered atomic.Int64
}

// Stats tell what a Live did since it began.
type Stats struct {
	Misses       int64 // names that were not in memory
	Questions    int64 // queries to the database
	FromRedis    int64 // names that Redis knew
	FromDatabase int64 // names that the database was asked about
	Failures     int64 // queries without an answer
	Unanswered   int64 // names that a request did not wait for any longer
	UsesDropped  int64 // uses of API keys that were never told to the database
}

// Stats tells what was done so far.
func (l *Live) Stats() Stats {
	return Stats{
		Misses: l.stats.misses.Load(), Questions: l.stats.questions.Load(), FromRedis: l.stats.fromRedis.Load(),
		FromDatabase: l.stats.fromDatabase.Load(), Failures: l.stats.failures.Load(), Unanswered: l.stats.unanswered.Load(),
		UsesDropped: l.uses.dropped.Load(),
	}
}

// lookUp answers flights from Redis and, where that does not know or is not to be believed, from the database.
func (l *Live) lookUp(ctx context.Context, flights []*flight) (found int, err error) {
	now, alone := l.opts.Now(), l.alone()
	var trusted []*flight
	rest := make([]*flight, 0, len(flights))
	for _, f := range flights {
		if alone || l.distrust.has(f.name, now) {
			rest = append(rest, f)
		} else {
			trusted = append(trusted, f)
		}
	}
	answers := l.shared.get(ctx, trusted)
	for i, f := range trusted {
		if answers == nil || answers[i] == nil {
			rest = append(rest, f)
			continue
		}
		l.stats.fromRedis.Add(1)
		f.record = l.shelf.record(*answers[i])
		if answers[i].Found {
			found++
		}
	}
	if len(rest) == 0 {
		return max(found, 1), nil // Redis alone was asked: the pace is the database's
	}
	asked, err := l.askDatabase(ctx, rest)
	return found + asked, err
}

func (l *Live) askDatabase(ctx context.Context, flights []*flight) (found int, err error) {
	whos := make([]registry.Who, len(flights))
	for i, f := range flights {
		whos[i] = f.who
	}
	l.stats.questions.Add(1)
	records, err := l.db.Records(ctx, whos)
	if err == nil && len(records) != len(whos) {
		err = fmt.Errorf("%d records of %d subjects", len(records), len(whos))
	}
	if err != nil {
		if l.stats.failures.Add(1); ctx.Err() == nil || ctx.Err() == context.DeadlineExceeded {
			l.opts.Log.Debug("subjects could not be looked up", "subjects", len(whos), "error", err)
		}
		return 0, err
	}
	l.stats.fromDatabase.Add(int64(len(whos)))
	for i, f := range flights {
		f.answer = &records[i]
		f.record = l.shelf.record(records[i])
		if records[i].Found {
			found++
		}
	}
	return found, nil
}

// alone tells whether there is nobody to share with.
func (l *Live) alone() bool { return l.shared == nil || l.opts.Nodes() < 2 }

// share tells the other nodes, through Redis, but for what changed just now.
func (l *Live) share(ctx context.Context, flights []*flight) {
	if l.alone() {
		return
	}
	now := l.opts.Now()
	answered := make([]*flight, 0, len(flights))
	for _, f := range flights {
		if f.answer != nil && !l.distrust.has(f.name, now) {
			answered = append(answered, f)
		}
	}
	l.shared.put(ctx, answered)
}

// distrust remembers what changed lately: about that Redis may still know the old.
type distrust struct {
	mu    sync.Mutex
	names map[name]time.Time // until when
	until time.Time          // all names
	swept time.Time
}

const (
	// distrustFor is longer than Redis keeps the answer to a question that began before a change. There should be a stone in its place, but
	// one can be lost, with the server that it was put on. A shorter time would save some questions about what has just changed.
	distrustFor = sharedFor + 3*time.Second
	// maxDistrusted bounds the names; beyond, all are distrusted for a while.
	maxDistrusted = 100_000
)

func (d *distrust) add(n name, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names == nil || now.Sub(d.swept) > distrustFor {
		for n, until := range d.names {
			if now.After(until) {
				delete(d.names, n)
			}
		}
		if d.names == nil {
			d.names = map[name]time.Time{}
		}
		d.swept = now
	}
	if len(d.names) >= maxDistrusted {
		d.until = now.Add(distrustFor)
		return
	}
	d.names[n] = now.Add(distrustFor)
}

// all distrusts everything until Redis has forgotten it.
func (d *distrust) all(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.until = now.Add(distrustFor)
}

func (d *distrust) has(n name, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return now.Before(d.until) || now.Before(d.names[n])
}
