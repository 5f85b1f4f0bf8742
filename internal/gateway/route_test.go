package gateway_test

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/gateway"
)

// nobody is an identity that trusts nobody.
type nobody struct{}

func (nobody) Subject(_ context.Context, peer netip.Addr, _ http.Header) sluice.Subject {
	return sluice.Subject{IP: peer}
}
func (nobody) Attributes(http.Header) map[string]string { return nil }
func (nobody) Trusted(netip.Addr) bool                  { return false }
func (nobody) Strip(netip.Addr, http.Header)            {}

func TestGateway_FindsTheRoute(t *testing.T) {
	t.Parallel()
	var urls [4]string
	var ups [4]*upstream
	for i := range urls {
		ups[i] = newUpstream(t, nil)
		urls[i] = ups[i].URL
	}
	b := newBed(t, setup{gateway: func(c *config.Gateway) {
		c.Upstreams = []config.Upstream{
			{Name: "any", URL: urls[0]}, {Name: "api", URL: urls[1] + "/base/"}, {Name: "host", URL: urls[2], Host: "inner.example"}, {Name: "post", URL: urls[3]},
		}
		c.Routes = []config.Route{
			{Upstream: "any", Path: "/", Methods: []string{"GET"}},
			{Upstream: "api", Path: "/api", StripPath: true},
			{Upstream: "post", Path: "/api/post", Methods: []string{"POST"}},
			{Upstream: "host", Host: "Shop.Example", Path: "/api"},
		}
	}})
	for _, c := range []struct {
		method, host, path string
		status, upstream   int
		seen, seenHost     string
	}{
		{"GET", "a.example", "/", 200, 0, "/", "a.example"},
		{"GET", "a.example", "/apis", 200, 0, "/apis", "a.example"},
		{"PUT", "a.example", "/apis", 405, 0, "", ""},
		{"GET", "a.example", "/api", 200, 1, "/base/", "a.example"},
		{"GET", "a.example", "/api/x%20y/?q=1", 200, 1, "/base/x%20y/?q=1", "a.example"},
		{"POST", "a.example", "/api/post", 200, 3, "/api/post", "a.example"},
		{"GET", "a.example", "/api/post", 200, 1, "/base/post", "a.example"},
		{"GET", "SHOP.example.:80", "/api/x", 200, 2, "/api/x", "inner.example"},
		{"GET", "shop.example", "/other", 200, 0, "/other", "shop.example"},
	} {
		before := len(ups[c.upstream].requests())
		got := b.do(b.request(c.method, c.path, "Host", c.host))
		if got.StatusCode != c.status {
			t.Errorf("%s %s%s: %s, want %d", c.method, c.host, c.path, got.Status, c.status)
			continue
		}
		if c.status == http.StatusMethodNotAllowed {
			if got.Header.Get("Allow") != "GET" {
				t.Errorf("Allow: %q", got.Header.Get("Allow"))
			}
			continue
		}
		seen := ups[c.upstream].requests()
		if len(seen) != before+1 || seen[before].RequestURI != c.seen || seen[before].Host != c.seenHost {
			t.Errorf("%s %s%s did not reach upstream %d as %s of %s: %+v", c.method, c.host, c.path, c.upstream, c.seen, c.seenHost, seen[before:])
		}
	}
}

func TestGateway_LimitsCannotBeDodgedByAnotherSpelling(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{rules: []sluice.Rule{perIP(3, "/api/search")}})
	for range 3 {
		b.get("/api/search")
	}
	for _, spelling := range []string{
		"/api/search", "/api/%73earch", "//api/search", "/api//search", "/api/./search", "/x/../api/search", "/api/%2e/search",
		"/%61pi/search", "/api/x/%2E%2E/search", "/api/search?", "/api/search?x=1", "/api/search%3f/../search",
	} {
		if got := b.get(spelling); got.StatusCode != http.StatusTooManyRequests {
			t.Errorf("%s: %s, want 429", spelling, got.Status)
		}
	}
	for _, unclear := range []string{"/api%2fsearch", "/api%5csearch", "/x/..;/api/search", "/api/search%00", "/api/search%0a"} {
		if got := b.get(unclear); got.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s, want 400", unclear, got.Status)
		}
	}
	for _, other := range []string{"/api/search/", "/api/searches", "/api/Search"} {
		if got := b.get(other); got.StatusCode != http.StatusOK {
			t.Errorf("%s is another path: %s", other, got.Status)
		}
	}
	for _, r := range b.upstream.requests()[3:] {
		if strings.Contains(r.RequestURI, "%73") || strings.Contains(r.URL.Path, "//") {
			t.Errorf("the upstream saw %s, the rules did not", r.RequestURI)
		}
	}
}

func TestNew_TellsEveryFaultAtOnce(t *testing.T) {
	t.Parallel()
	_, err := gateway.New(config.Gateway{
		Upstreams: []config.Upstream{
			{Name: "a", URL: "ftp://x"},
			{Name: "b", URL: "http://x"},
			{Name: "b", URL: "http://y"},
			{URL: "http://z"},
			{Name: "c", URL: "https://x", CAFile: "/nowhere.pem"},
			{Name: "d", URL: "http://user:pw@x"},
			{Name: "e", URL: "http://x", Host: "a/b"},
		},
		Routes: []config.Route{
			{Path: "/api/*", Upstream: "b"},
			{Path: "api", Upstream: "b"},
			{Upstream: "none"},
			{Upstream: "b", Cost: -1},
			{Upstream: "b", Host: "http://x"},
			{Upstream: "b", Methods: []string{"get"}},
		},
	}, overloaded{}, nobody{}, gateway.Options{})
	if err == nil {
		t.Fatal("no fault")
	}
	for _, want := range []string{
		`upstream[0] "a": url "ftp://x"`, `upstream[2]: there are two named "b"`, "upstream[3]", "has no name", "ca_file", `upstream[5] "d": url`, `host "a/b"`,
		`route[0]: path "/api/*" is a prefix`, `route[1]: path "api"`, `route[2]: upstream "none" is not among`, "route[3]: cost is -1",
		`route[4]: host "http://x"`, `route[5]: method "get"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("fault %q is missing in:\n%v", want, err)
		}
	}
}
