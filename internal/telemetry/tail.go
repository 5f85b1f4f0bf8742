package telemetry

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluicehq/sluice"
)

// Tail shows refusals as they happen: refused requests, those that a shadow rule would have refused, and those that
// passed without the counter store. It never holds up a decision: what a reader is too slow for is dropped and counted.
// It is safe for concurrent use.
type Tail struct {
	dropped prometheus.Counter

	mu      sync.Mutex // held by those who come and go
	readers atomic.Pointer[[]*Subscription]
}

// ErrTooManyReaders tells that the tail has as many readers as it serves.
var ErrTooManyReaders = errors.New("too many readers of the tail: end another one first")

const (
	maxReaders = 16
	// tailRoom is how many events wait for a reader, 100 kB or so: a burst of refusals that it can read in a moment.
	tailRoom = 512
)

// NewTail returns a tail without readers.
func NewTail(m *Metrics) *Tail {
	t := &Tail{dropped: m.tailDropped}
	t.readers.Store(&[]*Subscription{})
	return t
}

// Filter chooses events. Every non-empty field must be equal.
type Filter struct {
	Namespace, Rule, User, Tenant, Outcome string
	// FullIP shows whole addresses instead of their networks. Default false.
	FullIP bool
}

func (f *Filter) fits(e *Event) bool {
	return (f.Namespace == "" || f.Namespace == e.Namespace) &&
		(f.Rule == "" || f.Rule == e.Rule) &&
		(f.User == "" || f.User == e.User) &&
		(f.Tenant == "" || f.Tenant == e.Tenant) &&
		(f.Outcome == "" || f.Outcome == e.Outcome)
}

// Subscription is one reader's view of the tail.
type Subscription struct {
	tail    *Tail
	filter  Filter
	events  chan Event
	dropped atomic.Int64
}

// Subscribe begins to read. The reader must Close its subscription.
func (t *Tail) Subscribe(f Filter) (*Subscription, error) {
	s := &Subscription{tail: t, filter: f, events: make(chan Event, tailRoom)}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := *t.readers.Load()
	if len(now) >= maxReaders {
		return nil, ErrTooManyReaders
	}
	next := append(slices.Clip(now), s)
	t.readers.Store(&next)
	return s, nil
}

// Events yields what fits the filter. It is never closed.
func (s *Subscription) Events() <-chan Event { return s.events }

// Dropped returns how many events were dropped since it was last asked, because the reader was too slow.
func (s *Subscription) Dropped() int64 { return s.dropped.Swap(0) }

// Close ends the subscription. A second time does nothing.
func (s *Subscription) Close() {
	t := s.tail
	t.mu.Lock()
	defer t.mu.Unlock()
	next := slices.DeleteFunc(slices.Clone(*t.readers.Load()), func(r *Subscription) bool { return r == s })
	t.readers.Store(&next)
}

// read tells whether anybody reads, so that events are made for readers only.
func (t *Tail) read() bool { return len(*t.readers.Load()) > 0 }

// decided sends the events of a decision to those who read.
func (t *Tail) decided(req *sluice.Request, d *sluice.Decision, at time.Time, traceID trace.TraceID) {
	switch {
	case !d.Allowed:
		t.send(req, newEvent(req, d, at, traceID))
	case d.Mode > sluice.Leased:
		e := newEvent(req, d, at, traceID)
		e.Outcome = OutcomeDegraded
		t.send(req, e)
	}
	results := d.Results()
	for i := range results {
		if r := &results[i]; !r.Allowed && r.Rule.Action == sluice.Shadow {
			t.send(req, newEvent(req, d, at, traceID).shadow(r))
		}
	}
}

func (t *Tail) send(req *sluice.Request, e Event) {
	for _, s := range *t.readers.Load() {
		if !s.filter.fits(&e) {
			continue
		}
		e.IP = addressOf(req.Subject.IP, s.filter.FullIP)
		select {
		case s.events <- e:
		default:
			s.dropped.Add(1)
			t.dropped.Inc()
		}
	}
}
