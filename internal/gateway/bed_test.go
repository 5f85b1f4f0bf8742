package gateway_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/engine"
	"github.com/sluicehq/sluice/internal/gateway"
	"github.com/sluicehq/sluice/internal/httpserver"
	"github.com/sluicehq/sluice/internal/identity"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

// setup is what a test wants to be different.
type setup struct {
	rules    []sluice.Rule
	handler  http.HandlerFunc // of the upstream; default: 200
	gateway  func(*config.Gateway)
	identity config.Identity
	options  gateway.Options
}

// bed is a gateway on a real socket, in front of an upstream that remembers, with its counters in a real Redis.
type bed struct {
	t        *testing.T
	addr     string
	handler  http.Handler
	server   *httpserver.Server
	upstream *upstream
}

// upstream remembers what reached it.
type upstream struct {
	*httptest.Server
	mu   sync.Mutex
	seen []*http.Request
}

func newBed(t *testing.T, s setup) *bed {
	t.Helper()
	u := newUpstream(t, s.handler)
	cfg := config.Gateway{
		Upstreams: []config.Upstream{{Name: "app", URL: u.URL}},
		Routes:    []config.Route{{Upstream: "app"}},
	}
	if s.gateway != nil {
		s.gateway(&cfg)
	}
	who, err := identity.New(s.identity, identity.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.options.Log = slog.New(slog.NewTextHandler(testWriter{t}, nil))
	g, err := gateway.New(cfg, engine.New(newLimiter(t, s.rules), engine.Options{}), who, s.options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	addr, server := serve(t, g)
	return &bed{t: t, addr: addr, handler: g, server: server, upstream: u}
}

func newUpstream(t *testing.T, handler http.HandlerFunc) *upstream {
	t.Helper()
	u := &upstream{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.mu.Lock()
		u.seen = append(u.seen, r.Clone(context.WithoutCancel(r.Context())))
		u.mu.Unlock()
		if handler != nil {
			handler(w, r)
		}
	}))
	t.Cleanup(u.Close)
	return u
}

// requests returns what reached the upstream.
func (u *upstream) requests() []*http.Request {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.seen
}

// newLimiter returns a limiter on a real Redis. Its deadline is long, because the machine may be busy.
func newLimiter(t *testing.T, rules []sluice.Rule) *sluice.Limiter {
	t.Helper()
	server := testredis.Single(t, testredis.Options{})
	conn, err := rueidisconn.New(rueidisconn.Options{Addrs: []string{server.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	set, faults := sluice.Compile(rules)
	for _, f := range faults {
		if !f.Warning {
			t.Fatal(f)
		}
	}
	return sluice.New(redisstore.New(conn, redisstore.Options{}), set, sluice.Options{Timeout: 10 * time.Second})
}

// serve runs a handler on a free port until the test ends.
func serve(t *testing.T, h http.Handler) (string, *httpserver.Server) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := httpserver.New(h, httpserver.Options{Streams: true})
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = s.Shutdown(ctx)
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return l.Addr().String(), s
}

// testWriter writes a log into the test's.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s", strings.TrimSpace(string(p)))
	return len(p), nil
}

// answer is a response whose body was read.
type answer struct {
	*http.Response
	body string
}

// do sends a request and reads the answer. Redirects are not followed.
func (b *bed) do(r *http.Request) answer {
	b.t.Helper()
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		b.t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatalf("%s %s: read the answer: %v", r.Method, r.URL, err)
	}
	return answer{res, string(body)}
}

// get asks for a path, with header fields given as name and value in turn.
func (b *bed) get(path string, fields ...string) answer {
	b.t.Helper()
	return b.do(b.request(http.MethodGet, path, fields...))
}

func (b *bed) request(method, path string, fields ...string) *http.Request {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, "http://"+b.addr+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		if strings.EqualFold(fields[i], "Host") {
			r.Host = fields[i+1]
		} else {
			r.Header[fields[i]] = append(r.Header[fields[i]], fields[i+1]) // as written, aliases stay aliases
		}
	}
	return r
}

// perIP is a rule that counts by address in windows so long that no test sees their end.
func perIP(limit int64, routes ...string) sluice.Rule {
	return sluice.Rule{
		Name: "per-ip", Key: []sluice.Dimension{sluice.IP}, Match: sluice.Match{Routes: routes},
		Limits: []sluice.Limit{{Algorithm: sluice.FixedWindow, Limit: limit, Window: 365 * 24 * time.Hour}},
	}
}

func parsePrefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}
