package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/adminhttp"
	"github.com/sluicehq/sluice/internal/testnode"
)

// patience is how long a promise may take that has no time of its own. Only a broken one takes it.
const patience = 20 * time.Second

// usersRule lets each user pass three times within the test.
const usersRule = `
[[rule]]
name   = "users"
key    = ["user"]
limits = [{ algorithm = "fixed_window", limit = 3, window = "365d" }]
`

// onRedis is the configuration of a node whose decisions are exact however busy the machine is.
func onRedis(addr string) string {
	return fmt.Sprintf("[redis]\nurl = \"redis://%s\"\n[limiter]\ntimeout = \"5s\"\n[shutdown]\ngrace = \"10ms\"\n", addr)
}

const inMemory = "[redis]\nurl = \"memory\"\n[shutdown]\ngrace = \"10ms\"\n"

// eventually looks until what was promised is so, and fails with the last reason why it is not.
func eventually(t *testing.T, within time.Duration, promise string, look func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := look()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %s: %v", promise, within, err)
		case <-tick.C:
		}
	}
}

// answer is a response that was read.
type answer struct {
	status int
	closes bool // the connection ends with it
	header http.Header
	body   string
}

// decision is a decision of the check API, as far as tests look at it.
type decision struct {
	Allowed bool   `json:"allowed"`
	Cause   string `json:"cause"`
	Mode    string `json:"mode"`
}

// request sends one and reads the answer.
func request(t *testing.T, client *http.Client, method, url, body string, header ...string) (answer, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for i := 0; i < len(header); i += 2 {
		if header[i+1] != "" {
			req.Header.Set(header[i], header[i+1])
		}
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Close, resp.Header, string(text)}, err
}

// mustRequest is request where nothing may go wrong.
func mustRequest(t *testing.T, method, url, body string, header ...string) answer {
	t.Helper()
	a, err := request(t, http.DefaultClient, method, url, body, header...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// check asks whether a user may pass.
func check(t *testing.T, n *testnode.Node, user string) (decision, answer) {
	t.Helper()
	a := mustRequest(t, http.MethodPost, "http://"+n.HTTP+"/v1/check", fmt.Sprintf(`{"subject":{"user":%q},"route":"/"}`, user))
	var d decision
	if err := json.Unmarshal([]byte(a.body), &d); err != nil {
		t.Fatalf("status %d: %v in %s", a.status, err, a.body)
	}
	return d, a
}

// admitted counts how many of some requests of one user pass.
func admitted(t *testing.T, n *testnode.Node, user string, requests int) int {
	t.Helper()
	passed := 0
	for range requests {
		if d, _ := check(t, n, user); d.Allowed {
			passed++
		}
	}
	return passed
}

// admin asks the admin listener with the token.
func admin(t *testing.T, n *testnode.Node, method, path, body string) answer {
	t.Helper()
	return mustRequest(t, method, "http://"+n.Admin+path, body, "Authorization", "Bearer "+testnode.AdminToken)
}

// statusOf is what a node says of itself.
func statusOf(t *testing.T, n *testnode.Node) adminhttp.Status {
	t.Helper()
	a := admin(t, n, http.MethodGet, "/v1/status", "")
	var s adminhttp.Status
	if err := json.Unmarshal([]byte(a.body), &s); err != nil || a.status != http.StatusOK {
		t.Fatalf("status %d: %v in %s", a.status, err, a.body)
	}
	return s
}

// metric is the line of a series without labels, or with the given ones.
func metric(t *testing.T, n *testnode.Node, series string) string {
	t.Helper()
	for line := range strings.Lines(mustRequest(t, http.MethodGet, "http://"+n.Admin+"/metrics", "").body) {
		if value, found := strings.CutPrefix(line, series+" "); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
