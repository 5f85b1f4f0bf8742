package redisstore_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
	"github.com/sluicehq/sluice/redisstore/goredisconn"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
	"github.com/sluicehq/sluice/storetest"
)

func TestStore_Single(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{MovableClock: true})
	runSuite(t, rueidisConn(t, rueidisconn.Options{Addrs: []string{server.Addr()}}), server.Clock())
}

func TestStore_Valkey(t *testing.T) {
	t.Parallel()
	if !testredis.HasValkey() {
		t.Skip("valkey-server is not installed: the package is in the distribution's backports only")
	}
	server := testredis.Single(t, testredis.Options{Binary: "valkey-server", MovableClock: true})
	runSuite(t, rueidisConn(t, rueidisconn.Options{Addrs: []string{server.Addr()}}), server.Clock())
}

func TestStore_Sentinel(t *testing.T) {
	t.Parallel()
	set := testredis.Sentinel(t, testredis.Options{MovableClock: true})
	runSuite(t, rueidisConn(t, rueidisconn.Options{Addrs: set.Addrs(), SentinelMaster: set.MasterName}), set.Clock())
}

func TestStore_Cluster(t *testing.T) {
	t.Parallel()
	cluster := testredis.Cluster(t, testredis.Options{MovableClock: true})
	runSuite(t, rueidisConn(t, rueidisconn.Options{Addrs: cluster.Addrs(), Cluster: true}), cluster.Clock())
}

func TestStore_GoRedisSingle(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{MovableClock: true})
	runSuite(t, goredisConn(t, redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})), server.Clock())
}

func TestStore_GoRedisCluster(t *testing.T) {
	t.Parallel()
	cluster := testredis.Cluster(t, testredis.Options{MovableClock: true})
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), MaxRetries: -1})
	runSuite(t, goredisConn(t, client), cluster.Clock())
}

func runSuite(t *testing.T, conn redisstore.Conn, clock *testredis.Clock) {
	t.Helper()
	storetest.Run(t, func(*testing.T) storetest.Fixture {
		return storetest.Fixture{
			Store:   redisstore.New(conn, redisstore.Options{}),
			SetTime: func(at time.Time) { clock.Freeze(at) },
		}
	})
}

func rueidisConn(t *testing.T, opts rueidisconn.Options) *rueidisconn.Conn {
	t.Helper()
	conn, err := rueidisconn.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

func goredisConn(t *testing.T, client redis.UniversalClient) *goredisconn.Conn {
	t.Helper()
	t.Cleanup(func() { _ = client.Close() })
	conn, err := goredisconn.New(client)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}
