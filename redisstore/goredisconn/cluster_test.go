package goredisconn

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
)

// No count is lost or repeated while a slot moves: served by the old master, by ASK from the new one, by MOVED there.
func TestRun_FollowsASlotThatMoves(t *testing.T) {
	t.Parallel()
	cluster := testredis.Cluster(t, testredis.Options{NoReplicas: true})
	conn := open(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), MaxRetries: -1}))
	if !conn.Sharded() {
		t.Fatal("Sharded: got false of a ClusterClient")
	}
	from, to := cluster.NodeBySlot(0), cluster.NodeBySlot(16383)
	moving, staying := keyAt(cluster, from, 1), keyAt(cluster, from, 2)
	elsewhere := keyAt(cluster, to, 1)
	slot := strconv.Itoa(int(redisstore.Slot(moving)))
	id := func(s *testredis.Server) string { return do(t, s, "CLUSTER", "MYID").(string) }
	// Alone, and in a pipeline with others, whose counts the redirection must not touch.
	count := func(step string, first int64) {
		t.Helper()
		t.Log(step)
		wantCounts(t, conn, first, moving)
		wantCounts(t, conn, first+1, moving)
		for i, call := range run(t, conn, incr, staying, moving, elsewhere) {
			if want := []int64{(first + 2) / 3, first + 2, (first + 2) / 3}[i]; call.Err != nil || call.Out[0] != want {
				t.Fatalf("%s: pipeline call %d: got %v, error %v, want %d", step, i, call.Out, call.Err, want)
			}
		}
	}

	count("before", 1)
	do(t, to, "CLUSTER", "SETSLOT", slot, "IMPORTING", id(from))
	do(t, from, "CLUSTER", "SETSLOT", slot, "MIGRATING", id(to))
	count("moving, the key still there", 4)
	if got := do(t, from, "MIGRATE", "127.0.0.1", strconv.Itoa(to.Port()), moving, "0", "5000"); got != "OK" {
		t.Fatalf("MIGRATE: got %v", got)
	}
	count("moving, the key gone: ASK", 7)
	for _, node := range []*testredis.Server{to, from} {
		do(t, node, "CLUSTER", "SETSLOT", slot, "NODE", id(to))
	}
	count("moved: MOVED", 10)
	if got := do(t, to, "GET", moving); got != "12" {
		t.Errorf("the new master: got %v counted, want 12", got)
	}
}

func TestRun_GoesOnAfterFailover(t *testing.T) {
	t.Parallel()
	cluster := testredis.Cluster(t, testredis.Options{NodeTimeout: 500 * time.Millisecond})
	conn := open(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), MaxRetries: -1, ContextTimeoutEnabled: true}))
	dead := cluster.NodeBySlot(0)
	key := keyAt(cluster, dead, 1)
	wantCounts(t, conn, 1, key)
	dead.Kill()
	start := time.Now()
	for {
		call := run(t, conn, incr, key)[0]
		if call.Err == nil {
			break
		}
		if time.Since(start) > patience { // go-redis by itself looks for new masters once a minute
			t.Fatalf("still failing %v after a master died: %v", patience, call.Err)
		}
	}
	t.Logf("counting again %v after the kill", time.Since(start))
}
