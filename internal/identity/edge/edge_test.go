package edge_test

import (
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/identity/addresscases"
	"github.com/sluicehq/sluice/internal/identity/edge"
)

func newEdge(t testing.TB, o edge.Options) *edge.Edge {
	t.Helper()
	e, err := edge.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestClient_IsAsTheTableSays(t *testing.T) {
	t.Parallel()
	cases := addresscases.All()
	if len(cases) < 200 {
		t.Errorf("the table has %d cases, want at least 200", len(cases))
	}
	names := map[string]bool{}
	for _, c := range cases {
		if names[c.Name] {
			t.Errorf("two cases are named %q", c.Name)
		}
		names[c.Name] = true
		if err := c.Check(newEdge(t, c.Options).Client); err != nil {
			t.Error(err)
		}
	}
}

func TestClient_IsNotChangedByWhatTheClientPrepends(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		trial := addresscases.NewTrial(rng)
		e := newEdge(t, trial.Options)
		before, after := e.Client(trial.Peer, trial.Before), e.Client(trial.Peer, trial.After)
		if before != trial.Client || after != trial.Client {
			t.Fatalf("peer %s, header %q: got %s; with more in front %q: got %s; want %s", trial.Peer, trial.Before, before, trial.After, after, trial.Client)
		}
	}
}

func TestClient_AllocatesNothing(t *testing.T) {
	e := newEdge(t, edge.Options{Trusted: addresscases.Proxies()})
	byForwarded := newEdge(t, edge.Options{Trusted: addresscases.Proxies(), Header: edge.Forwarded})
	proxy, client := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("203.0.113.5")
	h := http.Header{
		"X-Forwarded-For": {"1.1.1.1, 2001:db8::9, 10.0.0.2"},
		"Forwarded":       {`for=1.1.1.1, for="[2001:db8::9]:80";proto=https, for=10.0.0.2`},
	}
	for name, f := range map[string]func(){
		"no proxy":                   func() { e.Client(client, h) },
		"two proxies":                func() { e.Client(proxy, h) },
		"two proxies with Forwarded": func() { byForwarded.Client(proxy, h) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}

func TestStripFrom_IsAsTheTableSays(t *testing.T) {
	t.Parallel()
	for _, c := range addresscases.Fields() {
		if err := c.Check(newEdge(t, c.Options).StripFrom); err != nil {
			t.Error(err)
		}
	}
}

func TestNew_TellsAllFaults(t *testing.T) {
	t.Parallel()
	_, err := edge.New(edge.Options{
		Trusted: []netip.Prefix{{}, netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")},
		Depth:   33, Header: "x-real-ip", IPv6Prefix: 65, Identity: []string{"", "X-Real-IP", strings.Repeat("x", 65)},
	})
	for _, want := range []string{
		"not a network", "0.0.0.0/0 is everybody", "::/0 is everybody", "trusted_depth: 33", `forwarded: "x-real-ip"`, "ipv6_prefix: 65",
		`"" is not a name`, `"X-Real-IP" tells an address`, `"` + strings.Repeat("x", 65) + `" is not a name`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to mention %q", err, want)
		}
	}
	if _, err := edge.New(edge.Options{Identity: []string{"X-User"}}); err == nil || !strings.Contains(err.Error(), "trusted_proxies is empty") {
		t.Errorf("identity fields without proxies: got %v", err)
	}
}

func TestField_IsOneText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []string
		want   string
		ok     bool
	}{
		{nil, "", true},
		{[]string{""}, "", true},
		{[]string{"alice"}, "alice", true},
		{[]string{"CN=alice, O=example"}, "CN=alice, O=example", true},
		{[]string{strings.Repeat("ü", 255)}, strings.Repeat("ü", 255), true},
		{[]string{strings.Repeat("ü", 256)}, "", false},
		{[]string{"alice", "alice"}, "", false},
		{[]string{"alice", ""}, "", false},
		{[]string{"a\tb"}, "", false},
		{[]string{"a\u0085b"}, "", false},
		{[]string{"a\xffb"}, "", false},
	} {
		if got, ok := edge.Field(http.Header{"X-User": c.values}, "X-User"); got != c.want || ok != c.ok {
			t.Errorf("%q: got %q, %t, want %q, %t", c.values, got, ok, c.want, c.ok)
		}
	}
}
