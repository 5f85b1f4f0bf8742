package forwardauth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/engine"
	"github.com/sluicehq/sluice/internal/forwardauth"
	"github.com/sluicehq/sluice/memstore"
)

// nginx and caddy are a request as those proxies tell of it.
var (
	nginx = []string{"X-Original-Method", "POST", "X-Original-Uri", "/api/search?q=1", "X-Forwarded-For", "192.0.2.1"}
	caddy = []string{"X-Forwarded-Method", "POST", "X-Forwarded-Uri", "/api/search?q=1", "X-Forwarded-For", "192.0.2.1"}
)

func TestDoor_RefusesByTheStatusThatTheProxyAsksFor(t *testing.T) {
	t.Parallel()
	rule := perIP(1, "/api/search")
	rule.Response.Message = "Später wieder"
	door := forwardauth.New(newChecker(t, rule), trusting(t), forwardauth.Options{})
	if w := ask(door, "/v1/forward-auth", caddy...); w.Code != http.StatusOK || w.Header().Get("RateLimit") == "" || w.Body.Len() != 0 {
		t.Fatalf("allowed: %d %v %s", w.Code, w.Header(), w.Body)
	}
	plain := ask(door, "/v1/forward-auth", caddy...)
	if plain.Code != http.StatusTooManyRequests || plain.Header().Get("Retry-After") == "" || plain.Header().Get("Sluice-Problem") != "" {
		t.Errorf("refused: %d %v", plain.Code, plain.Header())
	}
	mapped := ask(door, "/v1/forward-auth?denied=403", nginx...)
	if mapped.Code != http.StatusForbidden || mapped.Header().Get("Sluice-Status") != "429" || mapped.Header().Get("Retry-After") == "" {
		t.Errorf("refused for nginx: %d %v", mapped.Code, mapped.Header())
	}
	var body, field struct {
		Type, Detail string
		Status       int
	}
	if err := json.Unmarshal(mapped.Body.Bytes(), &body); err != nil || body.Status != 429 || body.Detail != "Später wieder" {
		t.Errorf("body: %s, %v", mapped.Body, err)
	}
	text := mapped.Header().Get("Sluice-Problem")
	if err := json.Unmarshal([]byte(text), &field); err != nil || field != body || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		t.Errorf("Sluice-Problem: %s, %v", text, err)
	}
	always := forwardauth.New(newChecker(t, perIP(0+1, "/api/search")), trusting(t), forwardauth.Options{Denied: 401})
	ask(always, "/", caddy...)
	if w := ask(always, "/", caddy...); w.Code != http.StatusUnauthorized || w.Header().Get("Sluice-Status") != "429" {
		t.Errorf("configured status: %d %v", w.Code, w.Header())
	}
}

func TestDoor_TakesNamespaceAndCostFromTheProxysURL(t *testing.T) {
	t.Parallel()
	rule := perIP(10)
	rule.Namespace = "shop"
	door := forwardauth.New(newChecker(t, rule), trusting(t), forwardauth.Options{})
	if w := ask(door, "/v1/forward-auth?namespace=shop&cost=4", caddy...); w.Header().Get("X-RateLimit-Remaining") != "6" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := ask(door, "/v1/forward-auth?cost=4", caddy...); w.Code != http.StatusOK || w.Header().Get("X-RateLimit-Remaining") != "" {
		t.Errorf("another namespace: %d %v", w.Code, w.Header())
	}
}

func TestDoor_RefusesWhatItCannotBelieve(t *testing.T) {
	t.Parallel()
	never := checkerFunc(func(context.Context, sluice.Request) (sluice.Decision, error) {
		t.Error("the limits were asked")
		return sluice.Decision{}, nil
	})
	door := forwardauth.New(never, trusting(t), forwardauth.Options{})
	for name, c := range map[string]struct {
		url    string
		fields []string
		want   string
	}{
		"nothing told":            {"/", nil, "not told"},
		"no method":               {"/", []string{"X-Original-Uri", "/a"}, "original method is not told"},
		"no path":                 {"/", []string{"X-Original-Method", "GET"}, "original request is not told"},
		"two proxies' words":      {"/", append([]string{"X-Forwarded-Uri", "/free"}, nginx...), "do not agree"},
		"two methods":             {"/", append([]string{"X-Forwarded-Method", "GET"}, nginx...), "do not agree"},
		"one field twice":         {"/", append([]string{"X-Original-Uri", "/free"}, nginx...), "do not agree"},
		"another path in the URL": {"/", append([]string{"X-Original-Url", "http://x/free"}, nginx...), "do not agree"},
		"lower case method":       {"/", []string{"X-Original-Method", "post", "X-Original-Uri", "/a"}, "capitals"},
		"encoded slash":           {"/", []string{"X-Original-Method", "GET", "X-Original-Uri", "/api%2fsearch"}, "encoded slash"},
		"no path at all":          {"/", []string{"X-Original-Method", "GET", "X-Original-Uri", "*"}, "begin with"},
		"unknown parameter":       {"/?x=1", caddy, "is not known"},
		"cost of 0":               {"/?cost=0", caddy, "cost="},
		"cost of letters":         {"/?cost=a", caddy, "cost="},
		"status of a success":     {"/?denied=200", caddy, "denied="},
		"status of a server":      {"/?denied=500", caddy, "denied="},
		"two costs":               {"/?cost=1&cost=2", caddy, "twice"},
		"broken query":            {"/?%zz", caddy, "cannot be read"},
		"the client's own query":  {"/?cost=1", []string{"X-Forwarded-Method", "GET", "X-Forwarded-Uri", "/a?cost=1"}, "query of the original"},
	} {
		w := ask(door, c.url, c.fields...)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s: %d %s, want 400 with %q", name, w.Code, w.Body, c.want)
		}
	}
	if w := ask(door, "/?denied=403", "X-Original-Method", "GET"); w.Code != http.StatusForbidden || w.Header().Get("Sluice-Status") != "400" {
		t.Errorf("for nginx: %d %v", w.Code, w.Header())
	}
}

func TestDoor_TakesFieldsThatAgree(t *testing.T) {
	t.Parallel()
	var got sluice.Request
	door := forwardauth.New(checkerFunc(func(_ context.Context, req sluice.Request) (sluice.Decision, error) {
		got = req
		return sluice.Decision{Allowed: true, Cause: sluice.NoRule}, nil
	}), trusting(t), forwardauth.Options{})
	w := ask(door, "/", append([]string{"X-Original-Url", "https://shop.example//api/./%73earch?q=2#x", "X-Forwarded-Uri", ""}, nginx...)...)
	if w.Code != http.StatusOK || got.Route != "/api/search" || got.Method != http.MethodPost || got.Subject.IP.String() != "192.0.2.1" {
		t.Errorf("%d %s: %+v", w.Code, w.Body, got)
	}
}

func TestDoor_AnswersTrustedProxiesOnly(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	door := forwardauth.New(newChecker(t), trusting(t), forwardauth.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	for range 3 {
		r := httptest.NewRequest(http.MethodGet, "/v1/forward-auth", nil)
		r.RemoteAddr = "192.0.2.7:99"
		r.Header.Set("X-Forwarded-Uri", "/")
		w := httptest.NewRecorder()
		door.ServeHTTP(w, r)
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "identity.trusted_proxies") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if n := strings.Count(log.String(), "192.0.2.7"); n != 1 {
		t.Errorf("logged %d times: %s", n, &log)
	}
}

func TestDoor_HoldsThrottledRequests(t *testing.T) {
	t.Parallel()
	who := trusting(t)
	synctest.Test(t, func(t *testing.T) {
		set, _ := sluice.Compile([]sluice.Rule{{
			Name: "slow-down", Action: sluice.Throttle, MaxDelay: time.Minute,
			Limits: []sluice.Limit{{Algorithm: sluice.TokenBucket, Limit: 1, Window: 10 * time.Second, Burst: 1}},
		}})
		door := forwardauth.New(sluice.New(memstore.New(memstore.Options{}), set, sluice.Options{}), who, forwardauth.Options{})
		began := time.Now()
		for range 3 {
			if w := ask(door, "/", caddy...); w.Code != http.StatusOK {
				t.Fatal(w.Code)
			}
		}
		if took := time.Since(began).Round(time.Second); took != 20*time.Second {
			t.Errorf("three requests at one per 10 s took %s", took)
		}
	})
}

func TestDoor_LeavesItsOwnFailuresToTheProxy(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]int{
		engine.ErrOverloaded: 503, context.DeadlineExceeded: 503, context.Canceled: 499, sluice.ErrInvalidRequest: 403,
	} {
		door := forwardauth.New(checkerFunc(func(context.Context, sluice.Request) (sluice.Decision, error) {
			return sluice.Decision{}, err
		}), trusting(t), forwardauth.Options{})
		if w := ask(door, "/?denied=403", nginx...); w.Code != want {
			t.Errorf("%v: %d, want %d", err, w.Code, want)
		}
	}
}

func FuzzDoor(f *testing.F) {
	f.Add("GET", "/a?x=1", "/a", "cost=1")
	f.Add("POST", "https://x//a/../b%20c", "", "denied=403&namespace=x")
	f.Add("get", "*", "/%2f", "%zz")
	who := trusting(f)
	f.Fuzz(func(t *testing.T, method, uri, other, query string) {
		asked := false
		door := forwardauth.New(checkerFunc(func(_ context.Context, req sluice.Request) (sluice.Decision, error) {
			asked = true
			if !strings.HasPrefix(req.Route, "/") || strings.ContainsAny(req.Route, "?\\\x00\n") || req.Method == "" || req.Cost < 0 {
				t.Errorf("%+v of %q %q %q %q", req, method, uri, other, query)
			}
			return sluice.Decision{Allowed: true}, nil
		}), who, forwardauth.Options{})
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr, r.URL.RawQuery = "127.0.0.1:1", query
		r.Header = http.Header{"X-Forwarded-Method": {method}, "X-Forwarded-Uri": {uri}, "X-Original-Uri": {other}}
		w := httptest.NewRecorder()
		door.ServeHTTP(w, r)
		if asked != (w.Code == http.StatusOK) || !asked && w.Code >= 500 {
			t.Errorf("asked %v, answered %d", asked, w.Code)
		}
	})
}
