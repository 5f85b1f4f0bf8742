package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/engine"
	"github.com/sluicehq/sluice/memstore"
)

var errFakeBreaker = errors.New("fake breaker is open")

// bed is a node's telemetry on a real engine, whose store can be made to fail.
type bed struct {
	metrics  *Metrics
	outages  *Outages
	tail     *Tail
	observer *Observer
	store    *failingStore
	limiter  *sluice.Limiter
	engine   *engine.Engine
	log      *lines
}

func newBed(tb testing.TB, rules ...sluice.Rule) *bed {
	tb.Helper()
	b := &bed{log: new(lines), store: &failingStore{Store: memstore.New(memstore.Options{})}}
	b.metrics = NewMetrics(prometheus.NewRegistry(), MetricsOptions{Version: "v0.0.0-test", ErrBreaker: errFakeBreaker})
	b.outages = NewOutages(b.metrics, Logger(b.log, "json", new(slog.LevelVar)))
	b.tail = NewTail(b.metrics)
	b.observer = &Observer{Metrics: b.metrics, Outages: b.outages, Tail: b.tail}
	set := compile(tb, rules...)
	b.metrics.SetRules(set, 0)
	b.limiter = sluice.New(b.store, set, sluice.Options{Fallback: memstore.New(memstore.Options{})})
	b.engine = engine.New(b.limiter, engine.Options{Observer: b.observer})
	return b
}

func compile(tb testing.TB, rules ...sluice.Rule) *sluice.RuleSet {
	tb.Helper()
	set, faults := sluice.Compile(rules)
	for _, f := range faults {
		if !f.Warning {
			tb.Fatal(f)
		}
	}
	return set
}

func (b *bed) check(tb testing.TB, req sluice.Request) sluice.Decision {
	tb.Helper()
	d, err := b.engine.Check(tb.Context(), req)
	if err != nil {
		tb.Fatalf("check %+v: %v", req, err)
	}
	return d
}

// scrape returns the metrics as Prometheus would read them.
func (b *bed) scrape(tb testing.TB) string {
	tb.Helper()
	w := httptest.NewRecorder()
	b.metrics.Handler().ServeHTTP(w, httptest.NewRequestWithContext(tb.Context(), "GET", "/metrics", nil))
	if w.Code != 200 {
		tb.Fatalf("scrape: %d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func wantSeries(tb testing.TB, scraped string, series ...string) {
	tb.Helper()
	for _, s := range series {
		if !strings.Contains(scraped, "\n"+s+"\n") {
			tb.Errorf("no series %q in:\n%s", s, ours(scraped))
		}
	}
}

// ours leaves out the Go runtime's metrics.
func ours(scraped string) string {
	var b strings.Builder
	for line := range strings.Lines(scraped) {
		if strings.HasPrefix(line, "sluice_") && !strings.Contains(line, "_bucket{") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func userRule(name string, limit int64) sluice.Rule {
	return sluice.Rule{Name: name, Key: []sluice.Dimension{sluice.User}, Layer: name, Limits: []sluice.Limit{sluice.PerMinute(limit)}}
}

func byUser(user string) sluice.Request {
	return sluice.Request{Subject: sluice.Subject{User: user, IP: netip.MustParseAddr("192.0.2.77")}}
}

// failingStore answers by memory until it is told to fail.
type failingStore struct {
	sluice.Store
	err atomic.Pointer[error]
}

func (s *failingStore) fail(err error) {
	if err == nil {
		s.err.Store(nil)
		return
	}
	err = fmt.Errorf("%w: %w", sluice.ErrUnavailable, err)
	s.err.Store(&err)
}

func (s *failingStore) Take(ctx context.Context, groups [][]sluice.Charge) {
	err := s.err.Load()
	if err == nil {
		s.Store.Take(ctx, groups)
		return
	}
	for _, group := range groups {
		for i := range group {
			group[i].State = sluice.State{Err: *err}
		}
	}
}

// lines is a log that tests read while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(line)
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(strings.TrimSuffix(l.buf.String(), "\n"), "\n")
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

var _ engine.Observer = (*Observer)(nil)

const someTime = 700 * time.Microsecond
