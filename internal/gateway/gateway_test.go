package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/engine"
	"github.com/sluicehq/sluice/internal/gateway"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

func TestGateway_RefusesBeforeTheUpstreamIsCalled(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{rules: []sluice.Rule{perIP(3)}})
	for i := range 8 {
		got := b.get("/x")
		if want := i < 3; (got.StatusCode == http.StatusOK) != want {
			t.Fatalf("request %d: %s, want it allowed: %v", i+1, got.Status, want)
		}
		if i < 3 {
			continue
		}
		if got.StatusCode != http.StatusTooManyRequests || got.Header.Get("Retry-After") == "" || got.Header.Get("Cache-Control") != "no-store" {
			t.Fatalf("refusal: %s %v", got.Status, got.Header)
		}
		var problem struct{ Type string }
		if err := json.Unmarshal([]byte(got.body), &problem); err != nil || !strings.HasSuffix(problem.Type, "#quota-exceeded") {
			t.Fatalf("refusal's body: %s, %v", got.body, err)
		}
	}
	if n := len(b.upstream.requests()); n != 3 {
		t.Errorf("%d requests reached the upstream, want 3", n)
	}
}

func TestGateway_TellsLimitsOnEveryAnswer(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	b := newBed(t, setup{
		rules: []sluice.Rule{perIP(100)},
		gateway: func(c *config.Gateway) {
			c.Upstreams = append(c.Upstreams,
				config.Upstream{Name: "dead", URL: "http://" + deadAddr(t)},
				config.Upstream{Name: "slow", URL: c.Upstreams[0].URL, Timeout: ruledoc.Duration(50 * time.Millisecond)})
			c.Routes = append(c.Routes, config.Route{Path: "/dead", Upstream: "dead"}, config.Route{Path: "/slow", Upstream: "slow"})
		},
		handler: func(w http.ResponseWriter, r *http.Request) {
			var status int
			if r.URL.Path == "/slow" {
				select {
				case <-stop:
				case <-r.Context().Done():
				}
				return
			}
			_, _ = fmt.Sscanf(r.URL.Path, "/%d", &status)
			if status == http.StatusFound {
				w.Header().Set("Location", "http://example.com/")
			}
			w.WriteHeader(status)
		},
	})
	for path, want := range map[string]int{"/200": 200, "/302": 302, "/304": 304, "/404": 404, "/500": 500, "/503": 503, "/dead": 502, "/slow": 504} {
		got := b.get(path)
		if got.StatusCode != want {
			t.Errorf("%s: %s", path, got.Status)
		}
		if got.Header.Get("RateLimit") == "" || got.Header.Get("RateLimit-Policy") == "" || got.Header.Get("X-RateLimit-Remaining") == "" {
			t.Errorf("%s: no limits among %v", path, got.Header)
		}
		if want == 502 || want == 504 {
			if ct := got.Header.Get("Content-Type"); ct != "application/problem+json" || !strings.Contains(got.body, `"status":5`) {
				t.Errorf("%s: %s %s", path, ct, got.body)
			}
		}
	}
}

func TestGateway_ReplacesTheUpstreamsOwnLimitsWhereItSpeaksItself(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{rules: []sluice.Rule{perIP(10, "/limited")}, handler: func(w http.ResponseWriter, _ *http.Request) {
		for _, name := range []string{"RateLimit", "RateLimit-Policy", "RateLimit-Limit", "X-RateLimit-Limit", "Sluice-Mode"} {
			w.Header().Set(name, "theirs")
		}
		w.Header().Set("Connection", "RateLimit") // names a hop-by-hop field; ours is not
		w.Header().Set("Retry-After", "7")
	}})
	got := b.get("/limited")
	if v := got.Header.Values("RateLimit"); len(v) != 1 || !strings.HasPrefix(v[0], `"ip";r=9`) {
		t.Errorf("RateLimit: %q", v)
	}
	if v := got.Header.Values("X-RateLimit-Limit"); len(v) != 1 || v[0] != "10" {
		t.Errorf("X-RateLimit-Limit: %q", v)
	}
	if got.Header.Get("RateLimit-Limit") != "" || got.Header.Get("Sluice-Mode") != "" || got.Header.Get("Retry-After") != "7" {
		t.Errorf("header: %v", got.Header)
	}
	free := b.get("/free")
	if free.Header.Get("X-RateLimit-Limit") != "theirs" || free.Header.Get("Sluice-Mode") != "" {
		t.Errorf("without a rule: %v", free.Header)
	}
}

func TestGateway_TakesCostNamespaceAndAttributesFromTheRoute(t *testing.T) {
	t.Parallel()
	rule := perIP(10)
	rule.Namespace = "shop"
	rule.Match.Attributes = map[string]string{"plan": "trial"}
	b := newBed(t, setup{
		rules:    []sluice.Rule{rule},
		identity: config.Identity{Attributes: map[string]string{"plan": "X-Plan"}},
		gateway: func(c *config.Gateway) {
			c.Routes = []config.Route{{Upstream: "app", Namespace: "shop", Cost: 4, Attributes: map[string]string{"plan": "trial"}}}
		},
	})
	for i, want := range []string{"6", "2"} {
		got := b.get("/", "X-Plan", "gold") // the client's word does not replace the operator's
		if r := got.Header.Get("X-RateLimit-Remaining"); r != want {
			t.Errorf("request %d: %q left, want %q", i+1, r, want)
		}
	}
	if got := b.get("/"); got.StatusCode != http.StatusTooManyRequests {
		t.Errorf("third request: %s", got.Status)
	}
}

func TestGateway_HoldsThrottledRequests(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{rules: []sluice.Rule{throttled(100 * time.Millisecond)}})
	began := time.Now()
	for range 3 {
		if got := b.get("/"); got.StatusCode != http.StatusOK {
			t.Fatal(got.Status)
		}
	}
	if took := time.Since(began); took < 150*time.Millisecond {
		t.Errorf("three requests at one per 100 ms took %s", took)
	}
}

func TestGateway_CallsNoUpstreamForAThrottledClientThatIsGone(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{rules: []sluice.Rule{throttled(2 * time.Second)}})
	b.get("/first")
	r := b.request(http.MethodGet, "/gone")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := http.DefaultTransport.RoundTrip(r.WithContext(ctx)); err == nil { //nolint:bodyclose // it fails
		t.Fatal("the held request was answered at once")
	}
	b.get("/held") // held for longer than /gone would have been
	for _, r := range b.upstream.requests() {
		if r.URL.Path == "/gone" {
			t.Error("the request of the client that is gone reached the upstream")
		}
	}
}

// throttled lets one request through per interval, and holds those that are early.
func throttled(interval time.Duration) sluice.Rule {
	return sluice.Rule{
		Name: "slow-down", Key: []sluice.Dimension{sluice.IP}, Action: sluice.Throttle, MaxDelay: 10 * time.Second,
		Limits: []sluice.Limit{{Algorithm: sluice.TokenBucket, Limit: 1, Window: interval, Burst: 1}},
	}
}

func TestGateway_ShedsWhenTooManyAreUnderWay(t *testing.T) {
	t.Parallel()
	g, err := gateway.New(config.Gateway{
		Upstreams: []config.Upstream{{Name: "app", URL: "http://127.0.0.1:1"}}, Routes: []config.Route{{Upstream: "app"}},
	}, overloaded{}, nobody{}, gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	addr, _ := serve(t, g)
	b := &bed{t: t, addr: addr}
	if got := b.get("/"); got.StatusCode != http.StatusServiceUnavailable || got.Header.Get("Retry-After") != "1" {
		t.Errorf("%s %v", got.Status, got.Header)
	}
}

type overloaded struct{}

func (overloaded) Check(context.Context, sluice.Request) (sluice.Decision, error) {
	return sluice.Decision{}, engine.ErrOverloaded
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
