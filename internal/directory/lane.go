package directory

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/registry"
)

// lane gathers look-ups and sends them together, one question at a time. However many subjects are asked about, and by however many
// requests, the number of questions is bounded by the pace. It is safe for concurrent use.
type lane struct {
	// ask sets the record of each flight.
	ask func(ctx context.Context, flights []*flight) (found int, err error)
	// told is called with the flights once nobody waits for them any more.
	told func(ctx context.Context, flights []*flight)
	// keep is told of every answer that is current. It must not block.
	keep  func(f *flight)
	pace  pace
	depth int
	now   func() time.Time

	// failing: the last question had no answer, so nobody waits for the next.
	failing atomic.Bool
	wake    chan struct{}

	mu      sync.Mutex
	flights map[name]*flight // queued or sent
	queue   []*flight
}

// pace is the time from the beginning of a question to that of the next.
type pace struct {
	// least is between questions that find something.
	least time.Duration
	// most is what it grows to, each time doubled, while questions find nothing.
	most time.Duration
}

const (
	// batch is how many subjects are asked about at once. PostgreSQL takes some 10 ms for so many.
	batch = 1000
	// askTimeout bounds a question. A database that needs longer is of no use to whoever waits.
	askTimeout = time.Second
	// retryAfter is how soon a database that did not answer is asked again.
	retryAfter = 250 * time.Millisecond
	// maxQueued bounds the subjects that wait to be asked about; each takes some 300 bytes.
	maxQueued = 20_000
)

// flight is one subject being looked up, for all who want to know.
type flight struct {
	who  registry.Who
	name name
	key  string // in Redis; empty: it was not asked
	born time.Time
	done chan struct{}
	// record is set before done is closed; nil: no answer could be had.
	record *record
	// answer is what the database told; nil: it was not asked.
	answer *registry.Record

	// Guarded by the lane's mutex.
	sent bool
	// spoiled: it changed after the question was sent, so the answer may be the old one.
	spoiled bool
}

func newLane(p pace, now func() time.Time, ask func(context.Context, []*flight) (int, error), keep func(*flight)) *lane {
	return &lane{ask: ask, keep: keep, pace: p, depth: maxQueued, now: now, wake: make(chan struct{}, 1), flights: map[name]*flight{}}
}

// join looks a subject up, or joins those who do already. It returns nil when too many wait: the subject is then as good as unknown.
func (l *lane) join(n name, d dimension, id string) *flight {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.flights[n]; f != nil {
		return f
	}
	if len(l.queue) >= l.depth {
		return nil
	}
	f := &flight{who: registry.Who{Dimension: d.String(), ID: id}, name: n, born: l.now(), done: make(chan struct{})}
	l.flights[n] = f
	l.push(f)
	return f
}

// push queues a flight. The mutex is held.
func (l *lane) push(f *flight) {
	l.queue = append(l.queue, f)
	select {
	case l.wake <- struct{}{}:
	default: // it is awake
	}
}

// spoil tells that a subject changed, or all did where match is nil.
func (l *lane) spoil(match *name) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if match != nil {
		if f := l.flights[*match]; f != nil && f.sent {
			f.spoiled = true
		}
		return
	}
	for _, f := range l.flights {
		f.spoiled = f.sent
	}
}

// run answers until ctx ends.
func (l *lane) run(ctx context.Context) {
	gap := l.pace.least
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		timer.Reset(gap)
		found, err := l.send(ctx)
		switch {
		case err != nil:
			timer.Reset(retryAfter)
		case found > 0:
			gap = l.pace.least
		default:
			gap = min(2*gap, l.pace.most)
		}
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
}

// send asks one question. It returns how many subjects were found on record.
func (l *lane) send(ctx context.Context) (int, error) {
	flights := l.take()
	if len(flights) == 0 {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	found, err := l.ask(ctx, flights)
	l.failing.Store(err != nil)
	l.land(flights)
	if err == nil && l.told != nil {
		l.told(ctx, flights)
	}
	return found, err
}

func (l *lane) take() []*flight {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(batch, len(l.queue))
	flights := l.queue[:n:n]
	l.queue = l.queue[n:]
	for _, f := range flights {
		f.sent = true
	}
	if len(l.queue) > 0 {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
	return flights
}

// land answers those who wait. What changed in the meantime is asked for again.
func (l *lane) land(flights []*flight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range flights {
		if f.spoiled && f.record != nil {
			f.sent, f.spoiled, f.record, f.answer = false, false, nil, nil
			l.push(f)
			continue
		}
		if f.record != nil {
			l.keep(f)
		}
		delete(l.flights, f.name)
		close(f.done)
	}
}

// wait waits for a flight, but not longer than some time after it began: those who come later wait less.
func (l *lane) wait(f *flight, most time.Duration) *record {
	if f == nil {
		return nil
	}
	select {
	case <-f.done:
		return f.record
	default:
	}
	left := most - l.now().Sub(f.born)
	if left <= 0 || l.failing.Load() {
		return nil
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-f.done:
		return f.record
	case <-timer.C:
		return nil
	}
}
