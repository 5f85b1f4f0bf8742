package control

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/directory"
	"github.com/sluicehq/sluice/internal/postgres"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/testpg"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

// member is a node as far as the database concerns it: its part in the control plane, and its directory.
type member struct {
	plane *Plane
	live  *directory.Live
	stop  func()
}

// fleet is several nodes on one database and one Redis, whatever that consists of.
type fleet struct {
	t       *testing.T
	db      *postgres.DB
	members []member
	limit   int64 // of the rule "r", as it was set last
	tier    string
}

// newFleet starts three nodes and returns when each follows rules and hears of subjects.
func newFleet(t *testing.T, redis rueidisconn.Options) *fleet {
	t.Helper()
	option, err := redis.ClientOption()
	if err != nil {
		t.Fatal(err)
	}
	url := testpg.New(t).URL()
	f := &fleet{t: t, db: connect(t, url)}
	for i := range 3 {
		f.members = append(f.members, newMember(t, fmt.Sprint("node-", i), url, option))
	}
	f.wantRule("the first rule")
	f.wantSubject("the first subject")
	return f
}

func newMember(t *testing.T, name, url string, redis rueidis.ClientOption) member {
	t.Helper()
	const pepper = "a pepper of at least thirty-two characters"
	db := connect(t, url)
	live := directory.NewLive(directory.New(nil), db, directory.LiveOptions{
		Pepper: pepper, Entries: 1024, Redis: directory.NewRedis(redis, pepper), Wait: time.Second,
	})
	plane := New(db, name, Options{Node: name, Version: "v", Redis: &redis, OnNotice: live.Notice})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = live.Run(ctx) })
	end := run(t, plane)
	stop := func() {
		end()
		cancel()
		running.Wait()
	}
	t.Cleanup(stop)
	return member{plane, live, stop}
}

// wantRule changes the rule, and waits until every node has it.
func (f *fleet) wantRule(promise string) time.Duration {
	f.t.Helper()
	f.limit++
	putRule(f.t, f.db, "r", f.limit)
	return eventually(f.t, promise+" reaches every node", func() bool {
		return !slices.ContainsFunc(f.members, func(m member) bool { return limitOf(m.plane, "r") != f.limit })
	})
}

// wantSubject changes a subject, and waits until every node goes by it.
func (f *fleet) wantSubject(promise string) time.Duration {
	f.t.Helper()
	f.putSubject()
	return f.awaitSubject(promise)
}

func (f *fleet) putSubject() {
	f.t.Helper()
	f.tier = fmt.Sprint("tier-", time.Now().UnixNano())
	who := registry.Who{Dimension: string(sluice.User), ID: "ann"}
	if _, err := f.db.As(root).PutSubject(f.t.Context(), registry.Subject{Who: who, Tier: f.tier}, by); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) awaitSubject(promise string) time.Duration {
	f.t.Helper()
	return eventually(f.t, promise+" is seen by every node", func() bool {
		return !slices.ContainsFunc(f.members, func(m member) bool {
			ann := sluice.Subject{User: "ann"}
			m.live.Fill("", &ann)
			return ann.Tier != f.tier
		})
	})
}

// relay is the index of the node that holds the lease; -1: none does.
func (f *fleet) relay() int {
	f.t.Helper()
	for _, m := range f.members {
		b := m.plane.bus.(*redisBus)
		client, err := b.connected(f.t.Context())
		if err != nil {
			continue
		}
		id, err := client.Do(f.t.Context(), client.B().Get().Key(leaseKey).Build()).ToString()
		if err != nil {
			continue
		}
		return slices.IndexFunc(f.members, func(m member) bool { return m.plane.id == id })
	}
	return -1
}

// stopRelay stops the node that relays, and returns when another does.
func (f *fleet) stopRelay() {
	f.t.Helper()
	i := -1
	eventually(f.t, "a node relays", func() bool { i = f.relay(); return i >= 0 })
	f.members[i].stop()
	f.members = slices.Delete(f.members, i, i+1)
	eventually(f.t, "another node relays", func() bool { return f.relay() >= 0 })
}

// wantQuick checks that changes are told of, and not only found by looking: that would take two seconds and more. One may be held up by a busy
// machine, so the middle of several counts.
func (f *fleet) wantQuick() {
	f.t.Helper()
	var rules, subjects []time.Duration
	for range 7 {
		rules = append(rules, f.wantRule("a rule"))
		subjects = append(subjects, f.wantSubject("a subject"))
	}
	for what, took := range map[string][]time.Duration{"rules": rules, "subjects": subjects} {
		slices.Sort(took)
		if took[len(took)/2] > time.Second {
			f.t.Errorf("changes of %s took %v, want most within a second", what, took)
		}
	}
}

func (f *fleet) wantCounted() {
	f.t.Helper()
	eventually(f.t, "the database knows which revision every node serves", func() bool {
		nodes, err := f.db.Nodes(f.t.Context())
		want, _ := f.db.Revision(f.t.Context())
		current := 0
		for _, n := range nodes {
			if n.Revision == want {
				current++
			}
		}
		return err == nil && current >= len(f.members)
	})
}

func slotOf(t *testing.T, cluster *testredis.ClusterSet, key string) int {
	t.Helper()
	slot, err := cluster.Nodes()[0].Do("CLUSTER", "KEYSLOT", key)
	if err != nil {
		t.Fatal(err)
	}
	return int(slot.(int64))
}

func TestCluster_ChangesReachAllNodesAndOutliveTheRelayAndTheMasterOfItsLease(t *testing.T) {
	t.Parallel()
	cluster := testredis.Cluster(t, testredis.Options{})
	for _, node := range cluster.Nodes() {
		guard(t, node, "+cluster|slots", "+cluster|shards", "+asking")
	}
	f := newFleet(t, rueidisconn.Options{Addrs: cluster.Addrs(), Cluster: true, Username: aclUser, Password: aclPassword})
	f.wantQuick()
	f.wantCounted()
	f.stopRelay()
	f.wantRule("a rule after the relay is gone")
	f.wantSubject("a subject after the relay is gone")

	slot := slotOf(t, cluster, leaseKey)
	cluster.NodeBySlot(slot).Kill()
	f.putSubject()
	eventually(t, "there is another master", func() bool { return cluster.NodeBySlot(slot) != nil })
	f.awaitSubject("a subject that changed without a master")
	t.Logf("a rule took %s after the failover", f.wantRule("a rule after the failover"))
	f.wantCounted()
	f.wantQuick()
}

func TestSentinel_ChangesReachAllNodesAndOutliveTheRelayAndTheMaster(t *testing.T) {
	t.Parallel()
	set := testredis.Sentinel(t, testredis.Options{})
	for _, server := range []*testredis.Server{set.Master(), set.Replica()} {
		guard(t, server, "+role")
	}
	f := newFleet(t, rueidisconn.Options{Addrs: set.Addrs(), SentinelMaster: set.MasterName, Username: aclUser, Password: aclPassword})
	f.wantQuick()
	f.wantCounted()
	f.stopRelay()
	f.wantRule("a rule after the relay is gone")
	f.wantSubject("a subject after the relay is gone")

	old := set.Master()
	old.Pause()
	f.putSubject()
	eventually(t, "there is another master", func() bool { return set.Master() != old })
	f.awaitSubject("a subject that changed without a master")
	t.Logf("a rule took %s after the failover", f.wantRule("a rule after the failover"))
	old.Resume()
	f.wantCounted()
	f.wantQuick()
}
