package adminhttp

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/config"
)

// routes are all that the door has. A route that is not here is not tested for its token.
var routes = []struct {
	method, path string
	open         bool
}{
	{"GET", "/livez", true},
	{"GET", "/readyz", true},
	{"GET", "/healthz", true},
	{"GET", "/metrics", true},
	{"GET", "/v1/status", false},
	{"GET", "/v1/rules", false},
	{"GET", "/v1/inspect?user=u", false},
	{"GET", "/v1/tail", false},
	{"POST", "/v1/explain", false},
	{"POST", "/v1/refund", false},
	{"POST", "/v1/reset", false},
	{"GET", "/debug/pprof/", false},
	{"GET", "/debug/pprof/profile", false},
	{"GET", "/debug/pprof/heap", false},
	{"GET", "/", false},
	{"GET", "/unknown", false},
	{"DELETE", "/livez", false},
	{"GET", "/livez/../v1/status", false},
	{"GET", "//v1/status", false},
}

func withPprof(o *Options) { o.Pprof = true }

func TestGuard_EverythingButHealthAndMetricsAsksForTheToken(t *testing.T) {
	t.Parallel()
	for _, r := range routes {
		for _, header := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "Basic " + token, token, "Bearer " + token + "x", "Bearer " + token[1:]} {
			b := newBed(t, setup{change: withPprof}) // anew, because guesses are counted
			w := b.call(t, r.method, r.path, "{}", "Authorization", header)
			switch {
			case r.open && w.Code != http.StatusOK:
				t.Errorf("%s %s with %q: %d, want 200", r.method, r.path, header, w.Code)
			case !r.open && w.Code != http.StatusUnauthorized && w.Code/100 != 3: // a path to be cleaned is only redirected
				t.Errorf("%s %s with %q: %d, want 401", r.method, r.path, header, w.Code)
			case w.Code == http.StatusUnauthorized && !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Bearer"):
				t.Errorf("%s %s: 401 without WWW-Authenticate", r.method, r.path)
			}
		}
	}
}

func TestGuard_WithoutAConfiguredTokenNothingBehindItAnswers(t *testing.T) {
	t.Parallel()
	for _, r := range routes {
		b := newBed(t, setup{change: func(o *Options) { o.Token = nil; o.Pprof = true }})
		for _, header := range []string{"", "Bearer ", "Bearer x"} {
			w := b.call(t, r.method, r.path, "{}", "Authorization", header)
			if want := http.StatusForbidden; !r.open && w.Code != want && w.Code/100 != 3 {
				t.Errorf("%s %s with %q: %d, want %d", r.method, r.path, header, w.Code, want)
			}
			if w.Code == http.StatusForbidden && !strings.Contains(w.Body.String(), "admin.token") {
				t.Errorf("%s %s does not tell what to set: %s", r.method, r.path, w.Body)
			}
		}
	}
}

func TestGuard_StopsListeningToWhoGuesses(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{})
	b.ask(t, "GET", "/v1/status", "", http.StatusOK, nil) // else five would be the most for the account; see tries_test.go
	for i := range guessesPerMinute {
		if w := b.call(t, "GET", "/v1/status", "", "Authorization", "Bearer wrong"); w.Code != http.StatusUnauthorized {
			t.Fatalf("guess %d: %d, want 401", i+1, w.Code)
		}
	}
	for _, header := range []string{"Bearer wrong", "Bearer " + token} {
		w := b.call(t, "GET", "/v1/status", "", "Authorization", header)
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
			t.Errorf("after %d guesses: %d with Retry-After %q, want 429", guessesPerMinute, w.Code, w.Header().Get("Retry-After"))
		}
	}
	if w := b.call(t, "GET", "/livez", ""); w.Code != http.StatusOK {
		t.Errorf("health: %d, want 200", w.Code)
	}
}

func TestGuard_CountsRequestsWithoutATokenByAddressOnly(t *testing.T) {
	t.Parallel()
	b := newGuarded(t)
	for i := range guessesPerMinute + 1 {
		want := http.StatusUnauthorized
		if i == guessesPerMinute {
			want = http.StatusTooManyRequests
		}
		b.want(t, "192.0.2.1", []string{"", " "}[i%2], want)
	}
	for i := range 2 * guessesPerMinute {
		b.want(t, fmt.Sprintf("198.51.100.%d", i), "", http.StatusUnauthorized)
	}
	b.want(t, "203.0.113.1", token, http.StatusOK)
}

func TestGuard_UseWithTheTokenIsNotThrottled(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{})
	for range 5 * guessesPerMinute {
		b.ask(t, "GET", "/v1/status", "", http.StatusOK, nil)
	}
}

func TestGuard_TheTokenCanBeReplaced(t *testing.T) {
	t.Parallel()
	current := config.Secret("another")
	b := newBed(t, setup{change: func(o *Options) { o.Token = func() config.Secret { return current } }})
	if w := b.call(t, "GET", "/v1/status", "", "Authorization", "Bearer "+token); w.Code != http.StatusUnauthorized {
		t.Errorf("before: %d, want 401", w.Code)
	}
	current = token
	b.ask(t, "GET", "/v1/status", "", http.StatusOK, nil)
}

func TestGuard_CountsIPv6ByNetwork(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[2001:db8::1]:80": "2001:db8::/64", "[::ffff:192.0.2.1]:80": "192.0.2.1", "[fe80::1%eth0]:80": "fe80::/64", "@": "@",
	} {
		if got := guesserOf(&http.Request{RemoteAddr: from}); got != want {
			t.Errorf("%s: got %q, want %q", from, got, want)
		}
	}
}
