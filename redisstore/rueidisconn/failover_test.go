package rueidisconn

import (
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
)

// With the credentials of an ACL user that may do no more than documented at minimalACL.
func TestCluster_GoesOnAfterFailover(t *testing.T) {
	t.Parallel()
	cluster := testredis.Cluster(t, testredis.Options{NodeTimeout: 500 * time.Millisecond})
	for _, node := range cluster.Nodes() {
		setUser(t, node, append(minimalACL(), clusterACL()...)...)
	}
	conn := open(t, Options{Addrs: cluster.Addrs(), Cluster: true, Username: aclUser, Password: aclPassword})
	dead := cluster.NodeBySlot(0)
	key := keyAt(cluster, dead)
	mustCount(t, conn, key)
	dead.Kill()
	start := time.Now()
	eventually(t, "calls on the dead master's slots", func() error {
		_, err := within(t, 500*time.Millisecond, conn, key)
		return err
	})
	t.Logf("counting again %v after the kill", time.Since(start))
	for range 10 {
		mustCount(t, conn, key)
	}
	wantNothingRefused(t, cluster.NodeBySlot(int(redisstore.Slot(key))))
}

func TestSentinel_GoesOnAfterFailover(t *testing.T) {
	t.Parallel()
	set := testredis.Sentinel(t, testredis.Options{DownAfter: 500 * time.Millisecond})
	dead := set.Master()
	for _, node := range []*testredis.Server{dead, set.Replica()} {
		setUser(t, node, append(minimalACL(), sentinelACL()...)...)
	}
	conn := open(t, Options{Addrs: set.Addrs(), SentinelMaster: set.MasterName, Username: aclUser, Password: aclPassword})
	key := redisstore.ProbeKey(nil)
	mustCount(t, conn, key)
	dead.Kill()
	start := time.Now()
	eventually(t, "calls after failover", func() error {
		_, err := within(t, 500*time.Millisecond, conn, key)
		return err
	})
	t.Logf("counting again %v after the kill", time.Since(start))
	for range 10 {
		mustCount(t, conn, key)
	}
	if set.Master() == dead {
		t.Error("the sentinels still hold the dead server for the master")
	}
	wantNothingRefused(t, set.Master())
}
