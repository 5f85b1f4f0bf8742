package control

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/testpg"
	"github.com/sluicehq/sluice/internal/testredis"
)

func TestPlane_AChangeReachesEveryNodeThroughOneThatAsksTheDatabase(t *testing.T) {
	t.Parallel()
	db, redis := newDatabase(t), testredis.Single(t, testredis.Options{})
	putRule(t, db, "r", 1)
	var planes []*Plane
	for i := range 3 {
		p := New(db, fmt.Sprint("id", i), Options{Node: fmt.Sprint("node-", i), Version: "v", Redis: onRedis(t, redis)})
		if err := p.First(t.Context()); err != nil || limitOf(p, "r") != 1 {
			t.Fatalf("first rules: %v, limit %d, want 1", err, limitOf(p, "r"))
		}
		run(t, p)
		planes = append(planes, p)
	}
	for i, p := range planes { // relay elected, everybody subscribed
		eventually(t, "node follows the first change", func() bool {
			putRule(t, db, "r", int64(2+i)*1000+time.Now().UnixNano()%1000)
			return limitOf(p, "r") != 1
		})
	}
	for n := range int64(20) {
		putRule(t, db, "r", 10+n)
		took := eventually(t, "every node has the change", func() bool {
			return !slices.ContainsFunc(planes, func(p *Plane) bool { return limitOf(p, "r") != 10+n })
		})
		if took > 4*time.Second {
			t.Errorf("change %d took %s", n, took)
		}
	}
	eventually(t, "the database knows which revision every node serves", func() bool {
		nodes, err := db.Nodes(t.Context())
		want, _ := db.Revision(t.Context())
		return err == nil && len(nodes) == 3 && !slices.ContainsFunc(nodes, func(n registry.Node) bool { return n.Revision != want || n.Version != "v" })
	})
}

func TestPlane_FollowsByLookingWhenNoNoticeIsHeard(t *testing.T) {
	t.Parallel()
	for _, redis := range []*testredis.Server{nil, testredis.Single(t, testredis.Options{})} {
		db := newDatabase(t)
		opts := Options{Node: "n"}
		if redis != nil {
			opts.Redis = onRedis(t, redis)
		}
		var mu sync.Mutex
		missed := 0
		opts.OnNotice = func(n registry.Notice) {
			mu.Lock()
			defer mu.Unlock()
			if n.Kind == "" && n.Revision > 0 {
				missed++
			}
		}
		p := New(deaf{db}, "id", opts)
		run(t, p)
		eventually(t, "the first look", func() bool { return p.held.Load() != nil })
		putRule(t, db, "r", 7)
		if took := eventually(t, "the change is found", func() bool { return limitOf(p, "r") == 7 }); took > 5*time.Second {
			t.Errorf("found after %s, want 5 s or less", took)
		}
		eventually(t, "the node is told that notices were missed", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return missed > 0
		})
	}
}

func TestPlane_SubscribesAgainWhereNoNoticeIsHeard(t *testing.T) {
	t.Parallel()
	db, redis := newDatabase(t), testredis.Single(t, testredis.Options{})
	relay := New(db, "relay", Options{Node: "a", Redis: onRedis(t, redis)})
	run(t, relay)
	eventually(t, "somebody relays", func() bool { st, _ := relay.bus.state(t.Context()); return st.relayed && st.digest != "" })
	heard := make(chan registry.Notice, 100)
	p := New(absent{db}, "p", Options{Node: "b", Redis: onRedis(t, redis), OnNotice: func(n registry.Notice) { heard <- n }})
	deaf := &mute{bus: p.bus}
	p.bus = deaf
	run(t, p)
	eventually(t, "the first look", func() bool { return p.held.Load() != nil })
	putRule(t, db, "r", 7)
	eventually(t, "another subscription", deaf.again.Load)
	putRule(t, db, "r", 8)
	eventually(t, "a notice is heard", func() bool {
		select {
		case n := <-heard:
			return n.Kind == registry.KindRule
		default:
			return false
		}
	})
}

func TestPlane_AsksTheDatabaseItselfWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	db, redis := newDatabase(t), testredis.Single(t, testredis.Options{})
	p := New(db, "id", Options{Node: "n", Redis: onRedis(t, redis)})
	run(t, p)
	eventually(t, "the first look", func() bool { return p.held.Load() != nil })
	redis.Kill()
	putRule(t, db, "r", 7)
	if took := eventually(t, "the change is found", func() bool { return limitOf(p, "r") == 7 }); took > 8*time.Second {
		t.Errorf("found after %s", took)
	}
	redis.Restart()
	putRule(t, db, "r", 8)
	eventually(t, "the change after Redis is back is found", func() bool { return limitOf(p, "r") == 8 })
	eventually(t, "this node relays again", func() bool {
		st, err := p.bus.state(t.Context())
		return err == nil && st.relayed && st.revision == p.Revision()
	})
}

func TestPlane_AnotherNodeRelaysWhenTheRelayIsGone(t *testing.T) {
	t.Parallel()
	db, redis := newDatabase(t), testredis.Single(t, testredis.Options{})
	first := New(db, "first", Options{Node: "a", Redis: onRedis(t, redis)})
	stop := run(t, first)
	eventually(t, "the first relays", func() bool { st, _ := first.bus.state(t.Context()); return st.relayed })
	second := New(db, "second", Options{Node: "b", Redis: onRedis(t, redis)})
	run(t, second)
	eventually(t, "the second has rules", func() bool { return second.held.Load() != nil })
	stop()
	putRule(t, db, "r", 3)
	if took := eventually(t, "the change arrives", func() bool { return limitOf(second, "r") == 3 }); took > 6*time.Second {
		t.Errorf("arrived after %s", took)
	}
}

func TestPlane_AnotherNodeRelaysWhenTheRelayDiedWithoutAWord(t *testing.T) {
	t.Parallel()
	db, redis := newDatabase(t), testredis.Single(t, testredis.Options{})
	dead := newRedisBus(*onRedis(t, redis)) // all that is left of it is its lease
	if held, err := dead.campaign(t.Context(), "dead", leaseTime); err != nil || !held {
		t.Fatalf("campaign: %v %v", held, err)
	}
	dead.close()
	p := New(db, "heir", Options{Node: "b", Redis: onRedis(t, redis)})
	run(t, p)
	putRule(t, db, "r", 3)
	eventually(t, "the change arrives", func() bool { return limitOf(p, "r") == 3 })
	eventually(t, "the heir relays", func() bool { st, err := p.bus.state(t.Context()); return err == nil && st.relayed })
}

func TestFirst_StartsFromDiskWhenNobodyAnswers(t *testing.T) {
	t.Parallel()
	pg, redis := testpg.Start(t, testpg.Options{}), testredis.Single(t, testredis.Options{})
	db := connect(t, pg.Database(t).URL())
	putRule(t, db, "r", 5)
	path := filepath.Join(t.TempDir(), "rules.snapshot")
	before := New(db, "before", Options{Node: "a", SnapshotFile: path})
	if err := before.First(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, before)()
	pg.Kill()
	redis.Kill()
	began := time.Now()
	p := New(db, "after", Options{Node: "a", Redis: onRedis(t, redis), SnapshotFile: path})
	if err := p.First(t.Context()); err != nil || limitOf(p, "r") != 5 {
		t.Fatalf("first rules from disk: %v, limit %d, want 5", err, limitOf(p, "r"))
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("took %s, want a second or less", took)
	}
	without := New(db, "without", Options{Node: "a", Redis: onRedis(t, redis)})
	if err := without.First(t.Context()); !errors.Is(err, ErrNoRules) {
		t.Errorf("without a snapshot: %v, want ErrNoRules", err)
	}
	run(t, without)
	pg.Restart()
	eventually(t, "rules once the database is back", func() bool { return limitOf(without, "r") == 5 })
}

func TestFirst_TakesTheCopyInRedisWhenTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	db, redis := newDatabase(t), testredis.Single(t, testredis.Options{})
	putRule(t, db, "r", 5)
	relay := New(db, "relay", Options{Node: "a", Redis: onRedis(t, redis)})
	stop := run(t, relay)
	eventually(t, "there is a copy", func() bool { st, _ := relay.bus.state(t.Context()); return st.digest != "" })
	stop()
	p := New(absent{db}, "p", Options{Node: "b", Redis: onRedis(t, redis)})
	t.Cleanup(p.Close)
	if err := p.First(t.Context()); err != nil || limitOf(p, "r") != 5 {
		t.Errorf("first rules: %v, limit %d, want 5 from Redis", err, limitOf(p, "r"))
	}
}

func TestTake_NeverGoesBack(t *testing.T) {
	t.Parallel()
	p := New(absent{}, "id", Options{Node: "n"})
	at := func(revision sluice.Revision, limit int64) {
		s, err := seal(registry.Snapshot{Revision: revision, Rules: []ruleText{rule("r", limit)}})
		if err != nil {
			t.Fatal(err)
		}
		_, snap, err := open(s.text)
		if err != nil {
			t.Fatal(err)
		}
		p.take(s, snap, "test")
	}
	at(5, 50)
	at(4, 40)
	if p.Revision() != 5 || limitOf(p, "r") != 50 {
		t.Errorf("after an older one: revision %d, limit %d, want 5 and 50", p.Revision(), limitOf(p, "r"))
	}
	other := rule("other", 9)
	other.Namespace = "other"
	many := registry.Snapshot{Revision: 6, Rules: []ruleText{other}}
	for i := range sluice.MaxRules + 1 {
		many.Rules = append(many.Rules, rule(fmt.Sprint("many-", i), 1))
	}
	s, err := seal(many)
	if err != nil {
		t.Fatal(err)
	}
	p.take(s, many, "test")
	if snap, err := p.Snapshot(t.Context()); err != nil || limitOf(p, "r") != 50 || limitOf(p, "other") != 9 || len(snap.Texts[0].Faults) != 1 {
		t.Errorf("after too many in one namespace: %v, limit %d, want 50, the other namespace's rule, and a fault that tells of it", err, limitOf(p, "r"))
	}
	at(6, 50)
	if snap, err := p.Snapshot(t.Context()); err != nil || len(snap.Texts[0].Faults) != 0 {
		t.Errorf("after they are gone: %v, %v, want no fault", err, snap.Texts[0].Faults)
	}
	at(7, 50)
	if h := p.held.Load(); h.revision != 7 || h.snapshot.Revision != 6 || p.serving() != 7 {
		t.Errorf("after one with the same rules: %d of %d, serving %d, want 7 of 6, serving 7", h.revision, h.snapshot.Revision, p.serving())
	}
}
