package adminhttp

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/telemetry"
)

// next reads lines until one that is no heartbeat.
func next(t *testing.T, lines *bufio.Reader) telemetry.Event {
	t.Helper()
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("read the tail: %v after %q", err, line)
		}
		if line == "\n" {
			continue
		}
		var e telemetry.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		return e
	}
}

func TestTail_ShowsRefusalsAsTheyHappen(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{rules: []sluice.Rule{userRule("api", 1)}})
	// A server's bounds on whole requests must not end the stream.
	address := b.serve(t, func(s *http.Server) { s.ReadTimeout, s.WriteTimeout = 100*time.Millisecond, 100*time.Millisecond })
	lines := bufio.NewReader(get(t, t.Context(), address+"/v1/tail?user=u_42"))
	if first, err := lines.ReadString('\n'); first != "\n" || err != nil {
		t.Fatalf("the stream begins with %q, %v", first, err)
	}
	outlast := time.NewTimer(300 * time.Millisecond)
	<-outlast.C
	for range 3 {
		b.check(t, byUser("u_41"))
		b.check(t, byUser("u_42"))
	}
	for range 2 {
		if e := next(t, lines); e.User != "u_42" || e.Rule != "api" || e.Outcome != "refused" {
			t.Errorf("got %+v", e)
		}
	}
}

func TestTail_EndsWhenTheNodeDrains(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{})
	body := get(t, t.Context(), b.serve(t, func(*http.Server) {})+"/v1/tail")
	b.health.SetDraining()
	if _, err := io.ReadAll(body); err != nil {
		t.Errorf("the stream ended with %v, want its end", err)
	}
}

func TestTail_AReaderThatLeavesIsForgotten(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{rules: []sluice.Rule{userRule("api", 1)}})
	address := b.serve(t, func(*http.Server) {})
	for range 40 { // more than are served at once
		ctx, cancel := context.WithCancel(t.Context())
		get(t, ctx, address+"/v1/tail")
		cancel()
		waitForRoom(t, b)
	}
}

// waitForRoom waits until the tail serves nobody.
func waitForRoom(t *testing.T, b *bed) {
	t.Helper()
	const served = 16
	for range 10_000 {
		var all []*telemetry.Subscription
		for {
			s, err := b.tail.Subscribe(telemetry.Filter{})
			if err != nil {
				break
			}
			all = append(all, s)
		}
		for _, s := range all {
			s.Close()
		}
		if len(all) == served {
			return
		}
		pause := time.NewTimer(time.Millisecond)
		<-pause.C
	}
	t.Fatal("a reader that left is still served")
}

func TestTail_BeatsWhileNothingHappensAndTellsWhatWasDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, setup{rules: []sluice.Rule{userRule("api", 1)}})
		ctx, cancel := context.WithCancel(t.Context())
		w := &slowWriter{header: http.Header{}, gate: make(chan struct{}, 100)}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/v1/tail", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.handler.ServeHTTP(w, r)
		}()
		for range 3 {
			w.gate <- struct{}{}
		}
		<-time.After(2*heartbeat + time.Second)
		synctest.Wait()
		if got := w.text.String(); got != "\n\n\n" {
			t.Errorf("after two beats: %q", got)
		}
		for range 1001 { // while nobody reads; the first passes
			b.check(t, byUser("u_42"))
		}
		for range 600 {
			w.gate <- struct{}{}
		}
		synctest.Wait()
		cancel()
		<-done
		if got := w.text.String(); !strings.Contains(got, `{"dropped":`) {
			t.Errorf("nothing tells of events that were dropped")
		}
	})
}

// slowWriter takes one line for each token in its gate.
type slowWriter struct {
	header http.Header
	gate   chan struct{}
	text   strings.Builder
}

func (w *slowWriter) Header() http.Header { return w.header }
func (w *slowWriter) WriteHeader(int)     {}
func (w *slowWriter) Flush()              {}

func (w *slowWriter) Write(line []byte) (int, error) {
	<-w.gate
	return w.text.Write(line)
}

func TestTail_FiltersThatAreNotUnderstoodAreRefused(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{})
	for _, query := range []string{"usr=x", "full_ip=perhaps", "user=a&user=b"} {
		b.ask(t, "GET", "/v1/tail?"+query, "", http.StatusBadRequest, nil)
	}
}
