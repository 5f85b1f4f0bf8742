package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/sluicehq/sluice/internal/postgres"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
	"github.com/sluicehq/sluice/internal/testpg"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

var (
	root = registry.Actor{Name: "root", Grants: []registry.Grant{{Namespace: "*", Role: registry.Admin}}}
	by   = registry.Edit{Actor: "ann", Reason: "a test"}
)

// within is how long a promise may take that has no time of its own. Only a broken one takes it.
const within = 20 * time.Second

func rule(name string, n int64) ruledoc.Rule {
	return ruledoc.Rule{Name: name, Key: []string{"user"}, Limits: []ruledoc.Limit{{Limit: n, Window: ruledoc.Duration(time.Minute)}}}
}

func connect(t *testing.T, url string) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), postgres.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// aclUser may do what docs/redis.md says and no more.
const aclUser, aclPassword = "sluice", "secret"

// guard makes the user on a server, with some commands more, and checks at the end of the test that he was refused nothing.
func guard(t *testing.T, server *testredis.Server, more ...string) {
	t.Helper()
	rules := append([]string{"ACL", "SETUSER", aclUser, "reset", "on", ">" + aclPassword, "~rl1:*"}, documented(t)...)
	if _, err := server.Do(append(rules, more...)...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		log, err := server.Do("ACL", "LOG")
		if err != nil {
			return // the test has ended it
		}
		for _, entry := range log.([]any) {
			if text := strings.ToLower(fmt.Sprint(entry)); !strings.Contains(text, "client|setinfo") {
				t.Errorf("refused by ACL: %s", text)
			}
		}
	})
}

// documented are the ACL rules of docs/redis.md.
func documented(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "redis.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^    (-@all \+evalsha|\+mget) .*$`).FindAllString(string(text), -1)
	if len(lines) != 2 {
		t.Fatalf("docs/redis.md has %d lines of ACL rules, want those of the store and of the control plane", len(lines))
	}
	return strings.Fields(strings.Join(lines, " "))
}

func onRedis(t *testing.T, server *testredis.Server) *rueidis.ClientOption {
	t.Helper()
	option, err := rueidisconn.Options{Addrs: []string{server.Addr()}}.ClientOption()
	if err != nil {
		t.Fatal(err)
	}
	return &option
}

// putRule changes a rule as an operator does.
func putRule(t *testing.T, db *postgres.DB, name string, limit int64) {
	t.Helper()
	if _, err := db.As(root).PutRule(t.Context(), "default", rule(name, limit), by); err != nil {
		t.Fatal(err)
	}
}

// run lets a plane take part until the test ends.
func run(t *testing.T, p *Plane) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.Run(ctx)
		p.Close()
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return stop
}

// limitOf is the limit of a rule as a plane has it; 0: no such rule.
func limitOf(p *Plane, name string) int64 {
	h := p.held.Load()
	if h == nil {
		return 0
	}
	for _, r := range h.snapshot.Rules {
		if r.Name == name && len(r.Limits) > 0 {
			return r.Limits[0].Limit
		}
	}
	return 0
}

// eventually looks until what was promised is so.
func eventually(t *testing.T, promise string, look func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for !look() {
		if sleep(ctx, 5*time.Millisecond) != nil {
			t.Fatalf("%s: not within %s", promise, within)
		}
	}
	return time.Since(began)
}

// deaf is a database whose notices are never heard.
type deaf struct{ *postgres.DB }

func (deaf) Listen(ctx context.Context, _ func(registry.Notice)) error {
	<-ctx.Done()
	return ctx.Err()
}

// absent is a database that does not answer.
type absent struct{ *postgres.DB }

var errAbsent = errors.New("absent")

func (absent) Snapshot(context.Context) (registry.Snapshot, error) {
	return registry.Snapshot{}, errAbsent
}

// mute is a bus whose first subscription hears nothing.
type mute struct {
	bus
	asked bool
	again atomic.Bool // it was subscribed to once more
}

func (m *mute) subscribe(ctx context.Context, fn func(registry.Notice)) error {
	if m.asked {
		return m.bus.subscribe(ctx, func(n registry.Notice) {
			fn(n)
			m.again.Store(true)
		})
	}
	m.asked = true
	fn(registry.Notice{})
	<-ctx.Done()
	return ctx.Err()
}

func newDatabase(t *testing.T) *postgres.DB {
	t.Helper()
	return connect(t, testpg.New(t).URL())
}
