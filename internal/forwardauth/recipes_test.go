package forwardauth_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/testproxy"
)

const deploy = "../../deploy"

// proxies are those whose recipes are tried, by name.
var proxies = map[string]func(t *testing.T, sluiceAddr, appAddr string) *testproxy.Proxy{
	"nginx": func(t *testing.T, sluiceAddr, appAddr string) *testproxy.Proxy {
		t.Helper()
		return testproxy.Nginx(t, func(listen, _ string) string {
			return testproxy.Recipe(t, deploy, "nginx/sluice.conf", listen, sluiceAddr, appAddr)
		})
	},
	"caddy": func(t *testing.T, sluiceAddr, appAddr string) *testproxy.Proxy {
		t.Helper()
		return testproxy.Caddy(t, func(listen string) string {
			return testproxy.Recipe(t, deploy, "caddy/Caddyfile", listen, sluiceAddr, appAddr)
		})
	},
}

// behindEach runs a test behind each proxy, with the real recipe.
func behindEach(t *testing.T, rules []sluice.Rule, test func(t *testing.T, addr string, reached func() int64)) {
	t.Helper()
	for name, start := range proxies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app, n := counting(t)
			door := serve(t, newChecker(t, rules...))
			p := start(t, hostPort(door.URL), hostPort(app.URL))
			test(t, p.Addr, n.Load)
			if t.Failed() {
				t.Log(p.Log())
			}
		})
	}
}

func hostPort(url string) string { return strings.TrimPrefix(url, "http://") }

func TestRecipes_RefuseWith429AndShowLimits(t *testing.T) {
	t.Parallel()
	behindEach(t, []sluice.Rule{perIP(3, "/api/search")}, func(t *testing.T, addr string, reached func() int64) {
		for i := range 6 {
			res := fetch(t, addr, "GET", "/api/search?q=1")
			if v := res.Header.Values("RateLimit"); len(v) != 1 || !strings.HasPrefix(v[0], `"ip";r=`) {
				t.Errorf("request %d: RateLimit %q", i+1, v)
			}
			if v := res.Header.Values("RateLimit-Policy"); len(v) != 1 || !strings.HasPrefix(v[0], `"ip";q=3`) {
				t.Errorf("request %d: RateLimit-Policy %q", i+1, v)
			}
			if i < 3 {
				if res.StatusCode != http.StatusOK || res.body != "app" {
					t.Errorf("request %d: %s %q", i+1, res.Status, res.body)
				}
				continue
			}
			wantProblem(t, res, http.StatusTooManyRequests)
			if res.Header.Get("Retry-After") == "" || res.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("refusal: %v", res.Header)
			}
		}
		if reached() != 3 {
			t.Errorf("%d requests reached the app, want 3", reached())
		}
	})
}

func wantProblem(t *testing.T, res answer, status int) {
	t.Helper()
	var p struct {
		Type, Instance string
		Status         int
	}
	err := json.Unmarshal([]byte(res.body), &p)
	if err != nil || res.StatusCode != status || p.Status != status || res.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("got %s %s %q (%v), want a problem with %d", res.Status, res.Header.Get("Content-Type"), res.body, err, status)
	}
}

func TestRecipes_PassWhatNoRuleConcernsAndTheAppsOwnAnswers(t *testing.T) {
	t.Parallel()
	behindEach(t, []sluice.Rule{perIP(3, "/api/search")}, func(t *testing.T, addr string, _ func() int64) {
		for range 5 {
			res := fetch(t, addr, "POST", "/free?status=403")
			if res.StatusCode != http.StatusForbidden || res.body != "app" {
				t.Errorf("%s %q, want the app's own 403", res.Status, res.body)
			}
			if v := res.Header.Get("RateLimit-Policy"); v != "" {
				t.Errorf("RateLimit-Policy %q without a rule", v)
			}
		}
		if res := fetch(t, addr, "PUT", "/api/search"); res.StatusCode != http.StatusOK || res.body != "app got this" {
			t.Errorf("%s %q, want the body to reach the app", res.Status, res.body)
		}
	})
}

func TestRecipes_CannotBeDodged(t *testing.T) {
	t.Parallel()
	post := perIP(1, "/api/search")
	post.Match.Methods = []string{"POST"}
	behindEach(t, []sluice.Rule{post}, func(t *testing.T, addr string, reached func() int64) {
		fetch(t, addr, "POST", "/api/search")
		for _, fields := range [][]string{
			{},
			{"X-Forwarded-For", "1.2.3.4"},
			{"X-Forwarded-Uri", "/free"},
			{"X-Forwarded-Method", "GET"},
			{"X-Original-Uri", "/free"},
			{"X-Original-Url", "http://x/free"},
			{"X-Original-Method", "GET"},
			{"X-Forwarded-Uri", "/free", "X-Forwarded-Method", "GET", "X-Original-Uri", "/free", "X-Original-Method", "GET"},
		} {
			if res := fetch(t, addr, "POST", "/api/search", fields...); res.StatusCode != http.StatusTooManyRequests {
				t.Errorf("%q: %s %s", fields, res.Status, res.body)
			}
		}
		for _, spelling := range []string{"//api/search", "/api/%73earch", "/api/./search", "/x/../api/search"} {
			if res := fetch(t, addr, "POST", spelling); res.StatusCode != http.StatusTooManyRequests {
				t.Errorf("%s: %s %s", spelling, res.Status, res.body)
			}
		}
		res := fetch(t, addr, "POST", "/api%2fsearch")
		wantProblem(t, res, http.StatusBadRequest)
		if reached() != 1 {
			t.Errorf("%d requests reached the app, want 1", reached())
		}
	})
}

func TestRecipes_TellBlockedClientsSo(t *testing.T) {
	t.Parallel()
	rule := sluice.Rule{Name: "no", Action: sluice.Block, Response: sluice.Response{Status: 403, Message: "Nicht möglich: 𝄞"}}
	behindEach(t, []sluice.Rule{rule}, func(t *testing.T, addr string, reached func() int64) {
		res := fetch(t, addr, "GET", "/")
		wantProblem(t, res, http.StatusForbidden)
		var p struct{ Detail string }
		if _ = json.Unmarshal([]byte(res.body), &p); p.Detail != "Nicht möglich: 𝄞" || reached() != 0 {
			t.Errorf("%q, %d reached the app", res.body, reached())
		}
	})
}

func TestRecipes_PassRequestsWhileSluiceDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for name, start := range proxies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app, n := counting(t)
			p := start(t, deadAddr(t), hostPort(app.URL))
			for range 3 {
				res := fetch(t, p.Addr, "GET", "/")
				if res.StatusCode != http.StatusOK || res.body != "app" || res.Header.Get("Sluice-Mode") != "open" {
					t.Errorf("%s %q %v\n%s", res.Status, res.body, res.Header, p.Log())
				}
			}
			if n.Load() != 3 {
				t.Errorf("%d requests reached the app, want 3", n.Load())
			}
		})
	}
}
