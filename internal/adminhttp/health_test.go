package adminhttp

import (
	"net/http"
	"strings"
	"testing"
)

func TestHealth_LosingRedisDoesNotMakeANodeUnready(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{change: func(o *Options) {
		o.Health = NewHealth(
			Probe{"rules", func() (State, string) { return Passing, "" }},
			Probe{"redis", func() (State, string) { return Degraded, "no answer\nsince 10s" }})
	}})
	w := b.call(t, "GET", "/readyz?verbose", "")
	want := "[+] rules: ok\n[~] redis: degraded: \"no answer\\nsince 10s\"\n[+] draining: ok\nok\n"
	if w.Code != http.StatusOK || w.Body.String() != want {
		t.Errorf("got %d\n%s\nwant 200\n%s", w.Code, w.Body, want)
	}
	if w := b.call(t, "GET", "/readyz", ""); w.Code != http.StatusOK || w.Body.String() != "ok\n" {
		t.Errorf("without verbose: %d %s", w.Code, w.Body)
	}
}

func TestHealth_WithoutRulesANodeIsLiveAndNotReady(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{change: func(o *Options) {
		o.Health = NewHealth(Probe{"rules", func() (State, string) { return Failing, "none were read yet" }})
	}})
	for path, want := range map[string]int{"/livez": 200, "/readyz": 503, "/healthz": 503, "/readyz?verbose=1": 503} {
		if w := b.call(t, "GET", path, ""); w.Code != want {
			t.Errorf("%s: %d, want %d: %s", path, w.Code, want, w.Body)
		}
	}
}

func TestHealth_DrainingIsNotReadyAndStaysLive(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{})
	if ready, _ := b.health.Ready(); !ready {
		t.Fatal("not ready before")
	}
	b.health.SetDraining()
	b.health.SetDraining()
	for path, want := range map[string]int{"/livez": 200, "/readyz": 503, "/healthz": 503} {
		if w := b.call(t, "GET", path, ""); w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
	if w := b.call(t, "GET", "/readyz?verbose", ""); !strings.Contains(w.Body.String(), "[-] draining: failed") {
		t.Errorf("got %s", w.Body)
	}
}

func TestHealth_AnswersAreNotCached(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{})
	for _, path := range []string{"/livez", "/readyz", "/metrics", "/v1/status"} {
		if got := b.call(t, "GET", path, "").Header().Get("Cache-Control"); got != "no-store" {
			t.Errorf("%s: Cache-Control %q", path, got)
		}
	}
}
