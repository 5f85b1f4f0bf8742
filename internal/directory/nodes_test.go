package directory_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/apikey"
	"github.com/sluicehq/sluice/internal/directory"
	"github.com/sluicehq/sluice/internal/postgres"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
	"github.com/sluicehq/sluice/internal/testpg"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

const pepper = "a pepper of at least thirty-two characters"

var (
	root = registry.Actor{Name: "root", Grants: []registry.Grant{{Namespace: "*", Role: registry.Admin}}}
	by   = registry.Edit{Actor: "ann", Reason: "a test"}
)

// nodes starts directories on a real database and a real Redis, which hear of changes and know how many they are.
func nodes(t *testing.T, count int) ([]*directory.Live, *postgres.Scoped, *testredis.Server) {
	t.Helper()
	return nodesWith(t, count, func() int { return count }, time.Now)
}

// nodesWith is nodes with a clock, and with a count that may be wrong.
func nodesWith(t *testing.T, count int, alive func() int, now func() time.Time) ([]*directory.Live, *postgres.Scoped, *testredis.Server) {
	t.Helper()
	redis := testredis.Single(t, testredis.Options{})
	all, db := nodesOn(t, rueidisconn.Options{Addrs: []string{redis.Addr()}}, count, alive, now)
	return all, db, redis
}

// nodesOn is nodesWith on a Redis of any kind.
func nodesOn(t *testing.T, redis rueidisconn.Options, count int, alive func() int, now func() time.Time) ([]*directory.Live, *postgres.Scoped) {
	t.Helper()
	db, err := postgres.Open(t.Context(), postgres.Options{URL: testpg.New(t).URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	option, err := redis.ClientOption()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	all := make([]*directory.Live, count)
	for i := range all {
		l := directory.NewLive(directory.New(nil), db, directory.LiveOptions{
			Pepper: pepper, Entries: 1024, Redis: directory.NewRedis(option, pepper), Wait: time.Second, KeyWait: time.Second,
			Nodes: alive, Now: now,
		})
		all[i] = l
		listening := make(chan struct{})
		running.Go(func() { _ = l.Run(ctx) })
		running.Go(func() {
			_ = db.Listen(ctx, func(n registry.Notice) {
				l.Notice(n)
				if n == (registry.Notice{}) {
					close(listening)
				}
			})
		})
		<-listening
	}
	return all, db.As(root)
}

// soon waits until every node sees something, for the second that a change may take.
func soon(t *testing.T, all []*directory.Live, what string, seen func(*directory.Live) bool) {
	t.Helper()
	late := time.After(time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for i, l := range all {
		for !seen(l) {
			select {
			case <-tick.C:
			case <-late:
				t.Fatalf("%s: not on node %d after a second", what, i)
			}
		}
	}
}

func subject(l *directory.Live, s sluice.Subject) sluice.Subject {
	l.Fill("", &s)
	return s
}

func TestLive_ChangesInTheDatabaseActOnAllNodesWithinASecond(t *testing.T) {
	t.Parallel()
	all, db, _ := nodes(t, 3)
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ann := registry.Who{Dimension: "user", ID: "ann"}
	asks := sluice.Subject{User: "ann"}
	soon(t, all, "nothing on record", func(l *directory.Live) bool { return subject(l, asks).Tier == "" })
	for round := range 5 {
		tier := fmt.Sprint("tier-", round)
		must(db.PutTier(t.Context(), registry.Tier{Name: tier}, by))
		must(db.PutSubject(t.Context(), registry.Subject{Who: ann, Tier: tier}, by))
		soon(t, all, tier, func(l *directory.Live) bool { return subject(l, asks).Tier == tier })
	}
	must(db.PutBlock(t.Context(), registry.Block{Who: ann, Reason: "abuse"}, by))
	soon(t, all, "block", func(l *directory.Live) bool { return subject(l, asks).Blocked != nil })
	must(nil, db.DeleteBlock(t.Context(), ann, by))
	soon(t, all, "no block", func(l *directory.Live) bool { return subject(l, asks).Blocked == nil })
	must(db.PutExemption(t.Context(), registry.Exemption{Who: ann, Reason: "ours"}, by))
	soon(t, all, "exemption", func(l *directory.Live) bool { return subject(l, asks).Exempt })
	must(db.PutOverride(t.Context(), registry.Override{
		Namespace: "default", Who: ann, Rule: "api", Limits: []ruledoc.Limit{{Limit: 7, Window: ruledoc.Duration(time.Minute)}}, Reason: "deal",
	}, by))
	soon(t, all, "override", func(l *directory.Live) bool {
		got := subject(l, asks).Overrides
		return len(got) == 1 && got[0].Limits[0].Limit == 7
	})
}

func TestLive_ARevokedKeyEndsOnAllNodesWithinASecond(t *testing.T) {
	t.Parallel()
	all, db, _ := nodes(t, 3)
	text, id, hash := apikey.New(pepper)
	if _, err := db.CreateKey(t.Context(), registry.Key{ID: id, Name: "k", Owner: "ann", Hashes: [][]byte{hash}}, by); err != nil {
		t.Fatal(err)
	}
	valid := func(text string) func(*directory.Live) bool {
		return func(l *directory.Live) bool {
			s, ok := l.Verify(t.Context(), text)
			return ok && s.User == "ann" && s.APIKey == id
		}
	}
	soon(t, all, "a new key", valid(text))
	newer, newHash := apikey.Renew(pepper, id)
	if _, err := db.RotateKey(t.Context(), id, newHash, time.Now().Add(time.Hour), by); err != nil {
		t.Fatal(err)
	}
	soon(t, all, "the new secret", valid(newer))
	soon(t, all, "the old secret", valid(text))
	if _, err := db.RevokeKey(t.Context(), id, by); err != nil {
		t.Fatal(err)
	}
	soon(t, all, "revocation", func(l *directory.Live) bool { return !valid(text)(l) && !valid(newer)(l) })
}

func TestLive_AsksRedisBeforeTheDatabaseAndNotWithoutNeed(t *testing.T) {
	t.Parallel()
	all, db, redis := nodes(t, 2)
	if _, err := db.PutTier(t.Context(), registry.Tier{Name: "pro"}, by); err != nil {
		t.Fatal(err)
	}
	who := registry.Who{Dimension: "user", ID: "ann"}
	if _, err := db.PutSubject(t.Context(), registry.Subject{Who: who, Tier: "pro"}, by); err != nil {
		t.Fatal(err)
	}
	soon(t, all, "tier", func(l *directory.Live) bool { return subject(l, sluice.Subject{User: "ann"}).Tier == "pro" })
	if keys, err := redis.Do("KEYS", "*ann*"); err != nil || len(keys.([]any)) != 0 {
		t.Errorf("Redis has keys with a client's name in it: %v %v", keys, err)
	}
	redis.Kill()
	for i := range 20 {
		name := fmt.Sprint("user-", i)
		if got := subject(all[i%2], sluice.Subject{User: name, Tenant: "none"}).Tier; got != "" {
			t.Errorf("%s is on tier %q", name, got)
		}
	}
	if got := all[0].Stats(); got.Failures != 0 || got.Unanswered != 0 {
		t.Errorf("without Redis: %+v", got)
	}
}

func TestLive_TellsRedisNothingWhileItIsAlone(t *testing.T) {
	t.Parallel()
	var alive, later atomic.Int64
	alive.Store(2)
	all, _, redis := nodesWith(t, 1, func() int { return int(alive.Load()) }, func() time.Time { return time.Now().Add(time.Duration(later.Load())) })
	later.Store(int64(time.Minute)) // a node that has just begun to listen does not trust Redis for a while
	asked := 0
	ask := func() {
		subject(all[0], sluice.Subject{User: fmt.Sprint("user-", asked)})
		asked++
	}
	size := func() int64 {
		n, err := redis.Do("DBSIZE")
		if err != nil {
			t.Fatal(err)
		}
		return n.(int64)
	}
	soon(t, all, "told to Redis", func(*directory.Live) bool { ask(); return size() > 0 })
	alive.Store(1)
	ask() // what was asked before is told by now: one question follows the other
	before := size()
	for range 20 {
		ask()
	}
	if got := size(); got > before {
		t.Errorf("a node that is alone told Redis of %d subjects", got-before)
	}
	alive.Store(2)
	soon(t, all, "told to Redis again", func(*directory.Live) bool { ask(); return size() > before })
}
