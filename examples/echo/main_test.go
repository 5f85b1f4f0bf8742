package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/memstore"
)

func TestRouter_RefusesTheThirdOfTwo(t *testing.T) {
	t.Parallel()
	// Per day: a shorter window could turn over between the requests.
	limiter := sluice.New(memstore.New(memstore.Options{}), sluice.PerKey(sluice.PerDay(2)), sluice.Options{})
	server := httptest.NewServer(newRouter(limiter))
	defer server.Close()
	for i, want := range []struct {
		path      string
		status    int
		remaining string
		body      string
	}{
		{"/healthz", 200, "", ""},
		{"/hello/alice", 200, "1", "hello \"alice\"\n"},
		{"/hello/bob", 200, "0", "hello \"bob\"\n"},
		{"/hello/alice", 429, "0", `"violated-policies":["default"]`},
		{"/healthz", 200, "", ""},
	} {
		resp, err := server.Client().Get(server.URL + want.path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != want.status || !strings.Contains(string(body), want.body) {
			t.Errorf("request %d, %s: %d %q, error %v, want %d %q", i, want.path, resp.StatusCode, body, err, want.status, want.body)
		}
		if got := resp.Header.Get("X-RateLimit-Remaining"); got != want.remaining {
			t.Errorf("request %d, %s: %s remaining, want %s", i, want.path, got, want.remaining)
		}
		if got := resp.Header.Get("Retry-After"); (got != "") != (want.status == http.StatusTooManyRequests) {
			t.Errorf("request %d, %s: status %d with Retry-After %q", i, want.path, resp.StatusCode, got)
		}
	}
}
