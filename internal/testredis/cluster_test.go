package testredis

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestCluster_ServesEverySlotAndIsGoneAfterTheTest(t *testing.T) {
	t.Parallel()
	for _, replicas := range []int{0, 3} {
		t.Run(fmt.Sprint(replicas, " replicas"), func(t *testing.T) {
			t.Parallel()
			var pids []int
			t.Run("use", func(t *testing.T) {
				c := Cluster(t, Options{NoReplicas: replicas == 0})
				for _, n := range c.Nodes() {
					pids = append(pids, n.PID())
				}
				if m, r := len(c.Masters()), len(c.Replicas()); m != 3 || r != replicas {
					t.Errorf("%d masters and %d replicas, want 3 and %d", m, r, replicas)
				}
				if got := len(c.Addrs()); got != 3+replicas {
					t.Errorf("%d addresses, want %d", got, 3+replicas)
				}
				// Slots of a, b, c and foo{x}: 15495, 3300, 7365, 16287.
				for key, slot := range map[string]int{"a": 15495, "b": 3300, "c": 7365, "foo{x}": 16287} {
					wantReply(t, c.Nodes()[0], int64(slot), "CLUSTER", "KEYSLOT", key)
					wantReply(t, c.NodeBySlot(slot), "OK", "SET", key, "v")
				}
			})
			for _, pid := range pids {
				if err := gone(pid); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestCluster_PromotesTheReplicaOfAKilledMaster(t *testing.T) {
	t.Parallel()
	const slot, key = 15495, "a"
	c := Cluster(t, Options{})
	master := c.NodeBySlot(slot)
	replica := c.ReplicaOf(master)
	if replica == nil || !slices.Contains(c.Replicas(), replica) {
		t.Fatalf("ReplicaOf(%s) = %v, want one of the replicas", master.Addr(), replica)
	}
	master.Kill()
	if got := c.NodeBySlot(slot); got == master {
		t.Error("the killed master is said to serve its slots")
	}
	waitFor(t, func() error {
		if got := c.NodeBySlot(slot); got != replica {
			return fmt.Errorf("slot %d is served by %v, want %s", slot, got, replica.Addr())
		}
		_, err := replica.Do("SET", key, "v")
		return err
	})
	if !slices.Contains(c.Masters(), replica) || slices.Contains(c.Replicas(), replica) {
		t.Error("the promoted node is not listed as a master")
	}
	master.Restart()
	waitFor(t, func() error { // its identity is kept: it comes back as a replica
		if !slices.Contains(c.Replicas(), master) {
			return fmt.Errorf("the old master is not a replica: replicas %v", addrs(c.Replicas()))
		}
		return nil
	})
}

func TestCluster_SharesOneClockAndTakesJumpsCalmly(t *testing.T) {
	t.Parallel()
	c := Cluster(t, Options{MovableClock: true})
	if off := time.Until(c.Clock().Now()).Abs(); off > time.Second {
		t.Errorf("the clock starts %v off", off)
	}
	before := addrs(c.Masters())
	synced := map[*Server]string{}
	for _, n := range c.Nodes() {
		synced[n] = syncs(t, n)
	}
	c.Clock().Freeze(epoch)
	for _, jump := range []time.Duration{time.Hour, -2 * time.Hour, 400 * 24 * time.Hour} {
		c.Clock().Advance(jump)
		for _, n := range c.Nodes() {
			wantReply(t, n, timeReply(c.Clock().Now()), "TIME")
		}
		ticks(t, c)
		if err := c.waitReady(); err != nil {
			t.Fatalf("after a jump of %v: %v", jump, err)
		}
		wantReply(t, c.NodeBySlot(15495), "OK", "SET", "a", "v")
	}
	if after := addrs(c.Masters()); !slices.Equal(after, before) {
		t.Errorf("masters %v, want %v as before the jumps", after, before)
	}
	for _, n := range c.Nodes() {
		if got := syncs(t, n); got != synced[n] {
			t.Errorf("node %s: %s syncs, want %s: a jump cut the link", n.Addr(), got, synced[n])
		}
	}
}

// syncs returns how often replicas synced with the node, in full and in part.
func syncs(t *testing.T, n *Server) string {
	t.Helper()
	info, err := n.Do("INFO", "stats")
	if err != nil {
		t.Fatal(err)
	}
	return infoField(info, "sync_full") + "+" + infoField(info, "sync_partial_ok")
}

// ticks waits until every node has gone through its timers for a second, replication's included:
// the cluster bus has sent another ping, which it does once a second.
func ticks(t *testing.T, c *ClusterSet) {
	t.Helper()
	sent := func(n *Server) string {
		info, err := n.Do("CLUSTER", "INFO")
		if err != nil {
			t.Fatal(err)
		}
		return infoField(info, "cluster_stats_messages_ping_sent")
	}
	first := map[*Server]string{}
	for _, n := range c.Nodes() {
		first[n] = sent(n)
	}
	waitFor(t, func() error {
		return c.each(func(n *Server) error {
			if got := sent(n); got == first[n] {
				return fmt.Errorf("no ping since number %s", got)
			}
			return nil
		})
	})
}
