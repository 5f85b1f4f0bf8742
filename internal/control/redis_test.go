package control

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

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

func TestRedisBus_NeedsNoMoreThanTheDocumentedACL(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{})
	if _, err := server.Do(append([]string{"ACL", "SETUSER", "sluice", "reset", "on", ">secret", "~rl1:*"}, documented(t)...)...); err != nil {
		t.Fatal(err)
	}
	option, err := rueidisconn.Options{Addrs: []string{server.Addr()}, Username: "sluice", Password: "secret"}.ClientOption()
	if err != nil {
		t.Fatal(err)
	}
	db := newDatabase(t)
	heard := make(chan registry.Notice, 100)
	p := New(db, "id", Options{Node: "n", Redis: &option, OnNotice: func(n registry.Notice) { heard <- n }})
	run(t, p)
	putRule(t, db, "r", 5)
	eventually(t, "the change arrives", func() bool { return limitOf(p, "r") == 5 })
	eventually(t, "the node is counted", func() bool { nodes, err := db.Nodes(t.Context()); return err == nil && len(nodes) == 1 })
	if err := p.bus.forget(t.Context(), []string{"n"}); err != nil {
		t.Error(err)
	}
	if len(heard) == 0 {
		t.Error("no notice was heard")
	}
	log, err := server.Do("ACL", "LOG")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range log.([]any) {
		if text := strings.ToLower(toText(entry)); !strings.Contains(text, "client|setinfo") {
			t.Errorf("refused by ACL: %s", text)
		}
	}
}

func TestRedisBus_ARelayThatWasSucceededPutsNothing(t *testing.T) {
	t.Parallel()
	b := newRedisBus(*onRedis(t, testredis.Single(t, testredis.Options{})))
	t.Cleanup(b.close)
	ctx := t.Context()
	if held, err := b.campaign(ctx, "first", leaseTime); err != nil || !held {
		t.Fatalf("the first campaign: %v, %v", held, err)
	}
	if held, err := b.campaign(ctx, "second", leaseTime); err != nil || held {
		t.Fatalf("while the first has the lease: %v, %v", held, err)
	}
	if err := b.resign(ctx, "second"); err != nil {
		t.Fatal(err)
	}
	s, err := seal(sample())
	if err != nil {
		t.Fatal(err)
	}
	if put, err := b.put(ctx, "second", s); err != nil || put {
		t.Errorf("put without the lease: %v, %v", put, err)
	}
	if put, err := b.put(ctx, "first", s); err != nil || !put {
		t.Errorf("put with the lease: %v, %v", put, err)
	}
	st, err := b.state(ctx)
	if want := (state{42, s.digest, true}); err != nil || st != want {
		t.Errorf("state %+v, %v, want %+v", st, err, want)
	}
	if err := b.resign(ctx, "first"); err != nil {
		t.Fatal(err)
	}
	if st, err := b.state(ctx); err != nil || st.relayed || st.digest != s.digest {
		t.Errorf("after resigning: %+v, %v, want the snapshot and nobody who relays", st, err)
	}
}
