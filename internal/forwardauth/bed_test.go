package forwardauth_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/engine"
	"github.com/sluicehq/sluice/internal/forwardauth"
	"github.com/sluicehq/sluice/internal/identity"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

// trusting is an identity that trusts the proxies of these tests.
func trusting(t testing.TB) *identity.Resolver {
	t.Helper()
	who, err := identity.New(config.Identity{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}, identity.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return who
}

// newChecker decides by these rules, with counters in a real Redis. Its deadline is long, because the machine may be busy.
func newChecker(t *testing.T, rules ...sluice.Rule) sluice.Checker {
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
	return engine.New(sluice.New(redisstore.New(conn, redisstore.Options{}), set, sluice.Options{Timeout: 10 * time.Second}), engine.Options{})
}

// perIP counts by address in windows so long that no test sees their end.
func perIP(limit int64, routes ...string) sluice.Rule {
	return sluice.Rule{
		Name: "per-ip", Key: []sluice.Dimension{sluice.IP}, Match: sluice.Match{Routes: routes},
		Limits: []sluice.Limit{{Algorithm: sluice.FixedWindow, Limit: limit, Window: 365 * 24 * time.Hour}},
	}
}

// ask calls the door as a proxy on loopback would, with header fields given as name and value in turn.
func ask(h http.Handler, url string, fields ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, url, nil)
	r.RemoteAddr = "127.0.0.1:1234"
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// serve runs the door on a free port.
func serve(t *testing.T, checker sluice.Checker) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/v1/forward-auth", forwardauth.New(checker, trusting(t), forwardauth.Options{}))
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// counting is an app that counts what reaches it, and answers with the status in the query.
func counting(t *testing.T) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		w.Header().Set("RateLimit", "theirs")
		if r.URL.Query().Get("status") == "403" {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = io.WriteString(w, "app")
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(s.Close)
	return s, &n
}

// answer is a response whose body was read.
type answer struct {
	*http.Response
	body string
}

// fetch asks a proxy on a connection of its own and reads the answer.
func fetch(t *testing.T, addr, method, uri string, fields ...string) answer {
	t.Helper()
	var body io.Reader
	if method == http.MethodPut {
		body = strings.NewReader(" got this")
	}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+uri, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res, string(text)}
}

// deadAddr is an address nobody listens on.
func deadAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// checkerFunc is a checker made of a function.
type checkerFunc func(context.Context, sluice.Request) (sluice.Decision, error)

func (f checkerFunc) Check(ctx context.Context, req sluice.Request) (sluice.Decision, error) {
	return f(ctx, req)
}
