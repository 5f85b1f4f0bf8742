package adminhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/checkhttp"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/engine"
	"github.com/sluicehq/sluice/internal/telemetry"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/memstore"
	"github.com/sluicehq/sluice/redisstore"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

func TestMain(m *testing.M) {
	// The database server is shared by all tests and goes with the process.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/sluicehq/sluice/internal/testpg.hire.func1"),
		goleak.IgnoreAnyFunction("github.com/sluicehq/sluice/internal/testpg.startProcess.func1"))
}

// token is planted: it must turn up in no log and no answer.
const token = "planted-token-5f0c"

// bed is an admin door over a real engine.
type bed struct {
	opts    Options
	health  *Health
	redis   *testredis.Server // nil: in memory
	limiter *sluice.Limiter
	engine  *engine.Engine
	tail    *telemetry.Tail
	log     *lines
	handler http.Handler
	served  strings.Builder // all answers
}

// record is what is on record about one user.
type record struct {
	user string
	fill func(*sluice.Subject)
}

func (r record) Fill(_ string, s *sluice.Subject) {
	if r.fill != nil && s.User == r.user {
		r.fill(s)
	}
}

type setup struct {
	rules  []sluice.Rule
	redis  bool
	record record
	change func(*Options)
}

func newBed(t *testing.T, s setup) *bed {
	t.Helper()
	b := &bed{log: new(lines), health: NewHealth(Probe{"rules", func() (State, string) { return Passing, "" }})}
	set, faults := sluice.Compile(s.rules)
	for _, f := range faults {
		if !f.Warning {
			t.Fatal(f)
		}
	}
	var store sluice.Store = memstore.New(memstore.Options{})
	if s.redis {
		b.redis = testredis.Single(t, testredis.Options{})
		conn, err := rueidisconn.New(rueidisconn.Options{Addrs: []string{b.redis.Addr()}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Close)
		onRedis := redisstore.New(conn, redisstore.Options{})
		store, b.opts.KeyOf = onRedis, onRedis.KeyOf
	}
	log := telemetry.Logger(b.log, "json", new(slog.LevelVar))
	metrics := telemetry.NewMetrics(prometheus.NewRegistry(), telemetry.MetricsOptions{})
	metrics.SetRules(set, 0)
	b.tail = telemetry.NewTail(metrics)
	observer := &telemetry.Observer{Metrics: metrics, Outages: telemetry.NewOutages(metrics, log), Tail: b.tail}
	b.limiter = sluice.New(store, set.WithRevision(3), sluice.Options{Timeout: time.Second})
	b.engine = engine.New(b.limiter, engine.Options{Observer: observer, Directory: s.record})
	b.opts.Token = func() config.Secret { return token }
	b.opts.Health, b.opts.Rules, b.opts.Metrics, b.opts.Tail, b.opts.Store = b.health, b.limiter.Rules, metrics.Handler(), b.tail, store
	b.opts.Explain, b.opts.Directory, b.opts.Log = checkhttp.New(b.engine, checkhttp.Options{}), s.record, log
	b.opts.Status = func() Status { return Status{Version: "v1", Node: "n1", Started: time.Now(), Enabled: true} }
	if s.change != nil {
		s.change(&b.opts)
	}
	b.handler = New(b.engine, b.opts)
	t.Cleanup(func() { b.wantNoSecret(t) })
	return b
}

// wantNoSecret holds for every test: no log line and no answer has the token in it.
func (b *bed) wantNoSecret(t *testing.T) {
	t.Helper()
	if strings.Contains(b.log.String(), token) {
		t.Errorf("the token is in the log:\n%s", b.log)
	}
	if strings.Contains(b.served.String(), token) {
		t.Errorf("the token is in an answer:\n%s", b.served.String())
	}
}

// call asks as somebody at 192.0.2.1.
func (b *bed) call(t *testing.T, method, path, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	_ = w.Header().Write(&b.served)
	b.served.Write(w.Body.Bytes())
	return w
}

// ask asks with the token and decodes the answer.
func (b *bed) ask(t *testing.T, method, path, body string, status int, into any) string {
	t.Helper()
	w := b.call(t, method, path, body, "Authorization", "Bearer "+token)
	if w.Code != status {
		t.Fatalf("%s %s %s: status %d, want %d: %s", method, path, body, w.Code, status, w.Body)
	}
	if into != nil {
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			t.Fatalf("%s %s: %v in %s", method, path, err, w.Body)
		}
	}
	return w.Body.String()
}

func (b *bed) check(t *testing.T, req sluice.Request) sluice.Decision {
	t.Helper()
	d, err := b.engine.Check(t.Context(), req)
	if err != nil || d.StoreErr != nil {
		t.Fatalf("check %+v: %v, %v", req, err, d.StoreErr)
	}
	return d
}

// serve runs the door on a real server, with the bounds in time that the given one has.
func (b *bed) serve(t *testing.T, bounds func(*http.Server)) string {
	t.Helper()
	s := httptest.NewUnstartedServer(b.handler)
	bounds(s.Config)
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

// get opens a stream with the token.
func get(t *testing.T, ctx context.Context, url string) io.Reader { //nolint:revive // the test comes first
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	resp, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s: %d %s", url, resp.StatusCode, body)
	}
	return resp.Body
}

func userRule(name string, limit int64) sluice.Rule {
	return sluice.Rule{Name: name, Layer: name, Key: []sluice.Dimension{sluice.User}, Limits: []sluice.Limit{sluice.PerHour(limit)}}
}

func byUser(user string) sluice.Request { return sluice.Request{Subject: sluice.Subject{User: user}} }

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

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
