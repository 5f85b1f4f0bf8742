package control

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

func TestRedisBus_NeedsNoMoreThanTheDocumentedACL(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{})
	guard(t, server)
	option, err := rueidisconn.Options{Addrs: []string{server.Addr()}, Username: aclUser, Password: aclPassword}.ClientOption()
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
	if put, err := b.put(ctx, "second", s, false); err != nil || put {
		t.Errorf("put without the lease: %v, %v", put, err)
	}
	if put, err := b.put(ctx, "first", s, false); err != nil || !put {
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

func TestRedisBus_EveryNoticeIsSentWhileANodeOfTheClusterIsDead(t *testing.T) {
	t.Parallel()
	cluster := testredis.Cluster(t, testredis.Options{})
	option, err := rueidisconn.Options{Addrs: cluster.Addrs(), Cluster: true}.ClientOption()
	if err != nil {
		t.Fatal(err)
	}
	b := newRedisBus(option)
	t.Cleanup(b.close)
	if _, err := b.state(t.Context()); err != nil {
		t.Fatal(err)
	}
	cluster.ReplicaOf(cluster.NodeBySlot(slotOf(t, cluster, leaseKey))).Kill()
	for i := range 30 {
		if err := b.publish(t.Context(), registry.Notice{Revision: 1}); err != nil {
			t.Fatalf("notice %d: %v", i, err)
		}
	}
}

func TestRedisBus_WaitsNoLongerThanItMayForAServerThatHangs(t *testing.T) {
	t.Parallel()
	set := testredis.Sentinel(t, testredis.Options{})
	option, err := rueidisconn.Options{Addrs: set.Addrs(), SentinelMaster: set.MasterName}.ClientOption()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range append(set.Sentinels(), set.Master()) {
		s.Pause()
	}
	b := newRedisBus(option)
	t.Cleanup(b.close)
	ctx, cancel := context.WithTimeout(t.Context(), firstTimeout)
	defer cancel()
	began := time.Now()
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if _, err := b.state(ctx); err == nil {
				t.Error("a server that hangs answered")
			}
		})
	}
	all.Wait()
	if took := time.Since(began); took > 2*firstTimeout {
		t.Errorf("took %s, want %s", took, firstTimeout)
	}
	for _, s := range append(set.Sentinels(), set.Master()) {
		s.Resume()
	}
	eventually(t, "it answers once the servers do", func() bool { _, err := b.state(t.Context()); return err == nil })
}

// A replica that is promoted may not have what its master was told last.
func TestRelay_PutsTheSnapshotAgainWhenRedisLostIt(t *testing.T) {
	t.Parallel()
	db, server := newDatabase(t), testredis.Single(t, testredis.Options{})
	putRule(t, db, "r", 1)
	p := New(db, "id", Options{Node: "n", Redis: onRedis(t, server)})
	run(t, p)
	current := func() bool {
		st, err := p.bus.state(t.Context())
		text, fetched := p.bus.fetch(t.Context())
		s, _, opened := open(text)
		revision, asked := db.Revision(t.Context())
		return err == nil && fetched == nil && opened == nil && asked == nil &&
			st.relayed && st.revision == revision && st.digest == s.digest
	}
	eventually(t, "there is a snapshot", current)
	if _, err := server.Do("DEL", snapshotKey, revisionKey); err != nil {
		t.Fatal(err)
	}
	eventually(t, "there is a snapshot after all was lost", current)
	if _, err := server.Do("DEL", snapshotKey); err != nil {
		t.Fatal(err)
	}
	if _, err := db.As(root).PutSubject(t.Context(), registry.Subject{Who: registry.Who{Dimension: "user", ID: "ann"}}, by); err != nil {
		t.Fatal(err)
	}
	eventually(t, "there is a snapshot after a change of something else", current)
}
