package directory_test

import (
	"fmt"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/directory"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

// clock is one that a test can put forward.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) forward(d time.Duration) { c.ahead.Add(int64(d)) }

func two() int { return 2 }

// wantShared checks that one node knows from Redis what another has asked the database about, in every slot.
func wantShared(t *testing.T, all []*directory.Live, prefix string) {
	t.Helper()
	const subjects = 100
	ask := func(l *directory.Live) {
		reqs := make([]sluice.Subject, subjects)
		for i := range reqs {
			reqs[i].User = fmt.Sprint(prefix, i)
			l.Expect(&reqs[i])
		}
		for i := range reqs {
			l.Fill("", &reqs[i])
		}
	}
	before := all[1].Stats()
	ask(all[0])
	ask(all[0]) // what was told to Redis is told before the next question
	subject(all[0], sluice.Subject{User: prefix})
	ask(all[1])
	if got := all[1].Stats(); got.FromRedis-before.FromRedis < subjects*9/10 {
		t.Errorf("%s: of %d subjects that the other node had asked about, Redis knew %d", prefix, subjects, got.FromRedis-before.FromRedis)
	}
}

func TestLive_SharesThroughAClusterAndDoesWithoutAMasterOfIt(t *testing.T) {
	t.Parallel()
	cluster := testredis.Cluster(t, testredis.Options{NodeTimeout: time.Hour}) // nobody takes the dead one's place
	var c clock
	all, db := nodesOn(t, rueidisconn.Options{Addrs: cluster.Addrs(), Cluster: true}, 2, two, c.now)
	c.forward(time.Minute) // a node that has just begun to listen does not trust Redis for a while
	wantShared(t, all, "before-")
	cluster.Masters()[0].Kill()
	ann := registry.Who{Dimension: "user", ID: "ann"}
	for round := range 3 {
		tier := fmt.Sprint("tier-", round)
		if _, err := db.PutSubject(t.Context(), registry.Subject{Who: ann, Tier: tier}, by); err != nil {
			t.Fatal(err)
		}
		soon(t, all, tier, func(l *directory.Live) bool { return subject(l, sluice.Subject{User: "ann"}).Tier == tier })
	}
	for i := range 100 {
		subject(all[i%2], sluice.Subject{User: fmt.Sprint("after-", i)})
	}
	for i, l := range all {
		if got := l.Stats(); got.Failures != 0 || got.Unanswered != 0 {
			t.Errorf("node %d without a master: %+v, want every name to be known", i, got)
		}
	}
}

func TestLive_SharesAgainAfterAFailoverBySentinels(t *testing.T) {
	t.Parallel()
	set := testredis.Sentinel(t, testredis.Options{})
	var c clock
	all, _ := nodesOn(t, rueidisconn.Options{Addrs: set.Addrs(), SentinelMaster: set.MasterName}, 2, two, c.now)
	c.forward(time.Minute)
	wantShared(t, all, "before-")
	old := set.Master()
	old.Kill()
	promoted := set.Replica()
	await(t, "there is another master", func() bool { return set.Master() == promoted })
	asked, before := 0, sets(t, promoted)
	await(t, "the new master is told", func() bool {
		subject(all[0], sluice.Subject{User: fmt.Sprint("after-", asked)})
		asked++
		return sets(t, promoted) > before
	})
}

// A stone is lost where the master on which it was put fails before its replica heard of it: the record from before the change is back.
func TestLive_BelievesNoRecordThatComesBackAfterAChange(t *testing.T) {
	t.Parallel()
	var c clock
	all, db, redis := nodesWith(t, 2, two, c.now)
	ann, asks := registry.Who{Dimension: "user", ID: "ann"}, sluice.Subject{User: "ann"}
	put := func(tier string) {
		t.Helper()
		if _, err := db.PutSubject(t.Context(), registry.Subject{Who: ann, Tier: tier}, by); err != nil {
			t.Fatal(err)
		}
	}
	put("old")
	var key, record string
	await(t, "the record is told to Redis", func() bool {
		c.forward(10 * time.Minute) // beyond what is distrusted after a change, and what is fresh
		subject(all[0], asks)
		keys, err := redis.Do("KEYS", "rl1:{d:*")
		if err != nil || len(keys.([]any)) != 1 {
			return false
		}
		key = keys.([]any)[0].(string)
		value, _ := redis.Do("GET", key)
		record, _ = value.(string)
		return len(record) > len("-")
	})
	before := sets(t, redis)
	put("new")
	await(t, "both nodes have put a stone", func() bool { return sets(t, redis) >= before+2 })
	if _, err := redis.Do("SET", key, record, "PX", "20000"); err != nil {
		t.Fatal(err)
	}
	c.forward(15 * time.Second)
	for i, l := range all {
		if got := subject(l, asks).Tier; got != "new" {
			t.Errorf("node %d goes by tier %q, want the new one", i, got)
		}
	}
}

// await looks until what was promised is so.
func await(t *testing.T, promise string, look func() bool) {
	t.Helper()
	late := time.After(20 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !look() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s: not within 20 s", promise)
		}
	}
}

// sets is how often a server was told to set a key.
func sets(t *testing.T, server *testredis.Server) int {
	t.Helper()
	info, err := server.Do("INFO", "commandstats")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("cmdstat_set:calls=([0-9]+)").FindStringSubmatch(info.(string))
	if found == nil {
		return 0
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
