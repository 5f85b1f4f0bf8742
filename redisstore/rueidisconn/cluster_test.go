package rueidisconn

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
)

// keyAt returns a key in a slot that the node serves.
func keyAt(cluster *testredis.ClusterSet, node *testredis.Server) string {
	for slot := 1; ; slot += 97 { // nodes have thousands of slots in a row
		if cluster.NodeBySlot(slot) == node {
			return redisstore.ProbeKey(func(s uint16) bool { return int(s) == slot })
		}
	}
}

func TestCluster_PausedMasterFailsOnlyItsOwnSlots(t *testing.T) {
	t.Parallel()
	cluster := testredis.Cluster(t, testredis.Options{NoReplicas: true, NodeTimeout: time.Minute})
	onBreaker, events := listen()
	conn := open(t, Options{Addrs: cluster.Addrs(), Cluster: true, OnBreaker: onBreaker})
	paused := cluster.NodeBySlot(0)
	down := keyAt(cluster, paused)
	var up []string
	for _, node := range cluster.Masters() {
		if node != paused {
			up = append(up, keyAt(cluster, node))
		}
	}
	counts := map[string]int64{}
	for _, key := range append(up, down) {
		counts[key] = mustCount(t, conn, key)
	}
	wantUp := func(when string) {
		t.Helper()
		for _, key := range up {
			n, err := within(t, patience, conn, key)
			if counts[key]++; err != nil || n != counts[key] {
				t.Fatalf("%s: slot %d of another master: got %d, error %v, want %d", when, redisstore.Slot(key), n, err, counts[key])
			}
		}
	}

	paused.Pause()
	for range 2 * openAfter { // before its breaker opens and after
		_, err := within(t, 50*time.Millisecond, conn, down)
		if err == nil {
			t.Fatal("a call on the paused master's slots was answered")
		}
		wantUp("while a master is paused")
	}
	untilOpen(t, conn, down)
	wantEvent(t, events, event{"slot 0", true})
	wantUp("after its breaker has opened")

	// All at once: what cannot be asked is refused, the rest answered.
	calls := []*redisstore.Call{{Script: incr, Keys: up[:1]}, {Script: incr, Keys: []string{down}}, {Script: incr, Keys: up[1:]}}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn.Run(ctx, calls)
	if calls[0].Err != nil || !errors.Is(calls[1].Err, ErrBreakerOpen) || calls[2].Err != nil {
		t.Errorf("all at once: got %v, %v, %v, want none, ErrBreakerOpen, none", calls[0].Err, calls[1].Err, calls[2].Err)
	}
	counts[up[0]]++
	counts[up[1]]++

	paused.Resume()
	eventually(t, "calls on the resumed master's slots", func() error {
		_, err := within(t, patience, conn, down)
		return err
	})
	wantEvent(t, events, event{"slot 0", false})
	wantUp("after it goes on")
	if len(events) > 0 {
		t.Errorf("OnBreaker was also told %+v, want nothing of other shards", <-events)
	}
}

// A slot that moves is followed by ASK and by MOVED, also with the minimal ACL.
func TestCluster_FollowsASlotThatMoves(t *testing.T) {
	t.Parallel()
	cluster := testredis.Cluster(t, testredis.Options{NoReplicas: true})
	for _, node := range cluster.Nodes() {
		setUser(t, node, append(minimalACL(), clusterACL()...)...)
	}
	conn := open(t, Options{Addrs: cluster.Addrs(), Cluster: true, Username: aclUser, Password: aclPassword})
	from, to := cluster.NodeBySlot(0), cluster.NodeBySlot(16383)
	key := keyAt(cluster, from)
	slot := strconv.Itoa(int(redisstore.Slot(key)))
	id := func(s *testredis.Server) string { return do(t, s, "CLUSTER", "MYID").(string) }
	want := int64(0)
	wantNext := func(when string) {
		t.Helper()
		if want++; mustCount(t, conn, key) != want {
			t.Fatalf("%s: got another count than %d", when, want)
		}
	}

	wantNext("before")
	do(t, to, "CLUSTER", "SETSLOT", slot, "IMPORTING", id(from))
	do(t, from, "CLUSTER", "SETSLOT", slot, "MIGRATING", id(to))
	wantNext("moving, the key still there")
	do(t, from, "MIGRATE", "127.0.0.1", strconv.Itoa(to.Port()), key, "0", "5000")
	wantNext("ASK")
	wantNext("ASK again")
	for _, node := range []*testredis.Server{to, from} {
		do(t, node, "CLUSTER", "SETSLOT", slot, "NODE", id(to))
	}
	wantNext("MOVED")
	wantNext("MOVED again")
	for _, node := range cluster.Nodes() {
		wantNothingRefused(t, node)
	}
}
