package rulefeed

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/directory"
	"github.com/sluicehq/sluice/memstore"
)

const policies = "../../examples/policies"

// node decides by a policy file, as a server would, on a clock of the test's own.
type node struct {
	t         *testing.T
	now       time.Time
	limiter   *sluice.Limiter
	directory *directory.Directory
}

// load puts policies in force and fails when there is anything to say about them.
func load(t *testing.T, dir string) *node {
	t.Helper()
	n := &node{t: t, now: time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return n.now }
	n.directory = directory.New(clock)
	n.limiter = sluice.New(memstore.New(memstore.Options{Now: clock}), &sluice.RuleSet{}, sluice.Options{Timeout: -1, Now: clock})
	feed := New(NewFiles(FilesOptions{Dir: dir}), func(r Rules) {
		people, faults := directory.Build(r.Document, n.now)
		if len(faults) > 0 {
			t.Errorf("directory: %v", faults)
		}
		n.limiter.SetRules(r.Set)
		n.directory.Set(people)
	}, Options{})
	if err := feed.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, f := range feed.Status().Faults {
		t.Error(f.Quote())
	}
	return n
}

// policy loads one of the files alone.
func policy(t *testing.T, name string) *node {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(policies, name))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, name), string(text))
	return load(t, dir)
}

func (n *node) check(req sluice.Request) sluice.Decision {
	n.t.Helper()
	n.directory.Fill(req.Namespace, &req.Subject)
	d, err := n.limiter.Check(n.t.Context(), req)
	if err != nil {
		n.t.Fatal(err)
	}
	return d
}

// admits asks n times at once and fails unless exactly want pass.
func (n *node) admits(what string, req sluice.Request, times, want int) {
	n.t.Helper()
	passed, last := 0, sluice.Decision{}
	for range times {
		d := n.check(req)
		if d.Allowed {
			passed++
		}
		last = d
	}
	if passed != want {
		n.t.Errorf("%s: %d of %d pass, want %d; the last: %s", what, passed, times, want, last.Reason())
	}
}

func from(ip string) sluice.Subject { return sluice.Subject{IP: netip.MustParseAddr(ip)} }

func TestPolicies_WorkTogether(t *testing.T) {
	t.Parallel()
	if n := load(t, policies); n.limiter.Rules().Len() < 15 {
		t.Errorf("only %d rules", n.limiter.Rules().Len())
	}
}

func TestPolicies_LoginSlowsGuessingAndLocksNobodyOut(t *testing.T) {
	t.Parallel()
	n := policy(t, "login.toml")
	try := func(ip, account string) sluice.Request {
		return sluice.Request{Subject: from(ip), Route: "/login", Method: "POST", Attributes: map[string]string{"account": account}}
	}
	n.admits("an attacker at one account", try("198.51.100.1", "ann"), 20, 5)
	n.admits("the owner of that account", try("192.0.2.7", "ann"), 3, 3)
	n.now = n.now.Add(time.Minute)
	n.admits("the attacker a minute later", try("198.51.100.1", "ann"), 20, 5)
	passed := 0
	for i := range 200 {
		if n.check(try("198.51.100.2", fmt.Sprintf("account-%d", i))).Allowed {
			passed++
		}
	}
	if passed != 50 {
		t.Errorf("one source tries %d accounts, want 50", passed)
	}
	for i := range 300 {
		n.check(try(fmt.Sprintf("203.0.%d.%d", 1+i/250, i%250), "bob"))
	}
	n.admits("the owner while 300 sources try", try("192.0.2.8", "bob"), 1, 1)
}

func TestPolicies_TiersGiveEachPlanItsOwn(t *testing.T) {
	t.Parallel()
	n := policy(t, "tiers.toml")
	user := func(user, tenant string) sluice.Request {
		return sluice.Request{Subject: sluice.Subject{User: user, Tenant: tenant, IP: netip.MustParseAddr("192.0.2.1")}, Route: "/"}
	}
	n.admits("free", user("u_1", ""), 100, 60)
	n.admits("another free user", user("u_2", ""), 100, 60)
	n.admits("pro", user("u_pro", ""), 1000, 600)
	n.admits("enterprise", user("u_3", "acme"), 1000, 500)
	n.admits("overridden", user("u_launch", ""), 500, 300)
	n.admits("told by a token", sluice.Request{Subject: sluice.Subject{User: "u_4", Tier: "pro"}}, 1000, 600)
	n.admits("anonymous", sluice.Request{Subject: from("192.0.2.1")}, 100, 20)
	for range 30 {
		n.now = n.now.Add(2 * time.Minute)
		n.admits("a free user each other minute", user("u_5", ""), 30, 30)
	}
	n.now = n.now.Add(2 * time.Minute)
	n.admits("a free user at the end of the day's share", user("u_5", ""), 200, 60)
	n.now = n.now.Add(2 * time.Minute)
	n.admits("a free user after it", user("u_5", ""), 200, 40)
}

func TestPolicies_RoutesCostWhatTheyAreWorth(t *testing.T) {
	t.Parallel()
	n := policy(t, "routes.toml")
	ask := func(user, method, route string, cost int64) sluice.Request {
		return sluice.Request{Subject: sluice.Subject{User: user}, Method: method, Route: route, Cost: cost}
	}
	n.admits("searches", ask("a", "GET", "/api/search", 0), 100, 30)
	n.admits("reads beside them", ask("a", "GET", "/api/items/7", 0), 1200, 1000)
	n.admits("inference with a burst", ask("a", "POST", "/api/models/m1/infer", 0), 20, 5)
	n.now = n.now.Add(3 * time.Second)
	n.admits("inference three seconds later", ask("a", "POST", "/api/models/m2/infer", 0), 20, 1)
	n.admits("videos", ask("a", "POST", "/api/videos", 0), 20, 10)
	n.admits("another user's videos, priced by the door", ask("b", "POST", "/api/videos", 500), 20, 2)
	n.admits("what no route names", ask("c", "DELETE", "/elsewhere", 1000), 20, 10)
}

func TestPolicies_WebhooksWaitInsteadOfBeingRefused(t *testing.T) {
	t.Parallel()
	n := policy(t, "webhooks.toml")
	deliver := sluice.Request{Route: "/webhooks/out", Attributes: map[string]string{"destination": "https://example.com/hook"}}
	n.admits("deliveries at once", deliver, 20, 20)
	for i := 1; i <= 50; i++ {
		if d, want := n.check(deliver), time.Duration(i)*100*time.Millisecond; !d.Allowed || (d.Delay-want).Abs() > time.Millisecond {
			t.Fatalf("delivery %d waits %s, allowed %v; want %s", 20+i, d.Delay, d.Allowed, want)
		}
	}
	n.admits("what would wait longer than five seconds", deliver, 5, 0)
	n.admits("another receiver", sluice.Request{Route: "/webhooks/out", Attributes: map[string]string{"destination": "other"}}, 20, 20)

	event := sluice.Request{Subject: sluice.Subject{Tenant: "acme"}, Route: "/webhooks/in/payments", Method: "POST"}
	n.admits("events", event, 600, 500)
	if d := n.check(event); d.RetryAfter != 30*time.Second || d.Results()[0].Rule.Response.Status != 503 {
		t.Errorf("refused event: retry after %s, status %d", d.RetryAfter, d.Results()[0].Rule.Response.Status)
	}
}

func TestPolicies_GuardKeepsTheServiceUp(t *testing.T) {
	t.Parallel()
	n := policy(t, "guard.toml")
	n.admits("one address", sluice.Request{Subject: from("192.0.2.99"), Route: "/"}, 300, 200)
	n.admits("health checks", sluice.Request{Subject: from("192.0.2.5"), Route: "/"}, 300, 300)
	n.admits("a blocked address", sluice.Request{Subject: from("203.0.113.66"), Route: "/"}, 3, 0)
	n.admits("what scanners ask for", sluice.Request{Subject: from("192.0.2.98"), Route: "/.git/config"}, 3, 0)
	passed := 0
	for i := range 11_000 {
		if n.check(sluice.Request{Subject: from(fmt.Sprintf("10.0.%d.%d", i/250, i%250)), Route: "/"}).Allowed {
			passed++
		}
	}
	if passed != 10_000-200 {
		t.Errorf("%d of all pass, want what the first address left: %d", passed, 10_000-200)
	}
}
