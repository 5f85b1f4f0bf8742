package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

func beat(t *testing.T, n *redisstore.Nodes, want int) {
	t.Helper()
	if err := n.Beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := n.Count(); got != want {
		t.Errorf("got %d nodes, want %d", got, want)
	}
}

func TestNodes_CountsThoseAliveAndForgetsTheSilentOnes(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{MovableClock: true})
	conn := rueidisConn(t, rueidisconn.Options{Addrs: []string{server.Addr()}})
	a, b, c := redisstore.NewNodes(conn, "host"), redisstore.NewNodes(conn, "host"), redisstore.NewNodes(conn, "host")
	if a.Count() != 1 {
		t.Errorf("before the first beat: got %d, want 1", a.Count())
	}
	beat(t, a, 1)
	beat(t, b, 2)
	beat(t, c, 3)
	server.Clock().Advance(4 * time.Second)
	beat(t, a, 3)
	server.Clock().Advance(2 * time.Second)
	beat(t, a, 1)
	beat(t, b, 2)
	if n, err := server.Do("PTTL", "rl1:{nodes}"); err != nil || n.(int64) <= 0 {
		t.Errorf("the set of nodes has PTTL %v, %v: want one above 0", n, err)
	}
}

func TestNodes_LeavesWhenItsRunEndsAndKeepsTheLastCountWithoutRedis(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{})
	conn := rueidisConn(t, rueidisconn.Options{Addrs: []string{server.Addr()}})
	a, b := redisstore.NewNodes(conn, "a"), redisstore.NewNodes(conn, "b")
	beat(t, a, 1)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- b.Run(ctx) }()
	for a.Count() != 2 {
		if err := a.Beat(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	beat(t, a, 1)
	beat(t, redisstore.NewNodes(conn, "c"), 2)
	beat(t, a, 2)
	server.Kill()
	if err := a.Beat(t.Context()); err == nil || a.Count() != 2 {
		t.Errorf("without Redis: got %d nodes and error %v, want 2 and one", a.Count(), err)
	}
}

func TestCredit_GivesBackUnitsOnRedis(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{})
	store := redisstore.New(rueidisConn(t, rueidisconn.Options{Addrs: []string{server.Addr()}}), redisstore.Options{})
	for _, limit := range []sluice.Limit{sluice.PerDay(10), {Algorithm: sluice.FixedWindow, Limit: 10, Window: 366 * 24 * time.Hour}, sluice.Bucket(10, 24*time.Hour, 10)} {
		l := sluice.New(store, sluice.PerKey(limit), sluice.Options{Timeout: time.Second})
		req := sluice.Request{Subject: sluice.Subject{User: limit.Algorithm.String()}, Cost: 6}
		if d, err := l.Check(t.Context(), req); err != nil || !d.Allowed || d.Mode != sluice.Exact {
			t.Fatalf("%s: got %s, %v", limit, d.Reason(), err)
		}
		req.Cost = 2
		if err := l.Credit(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		if d, _ := l.Peek(t.Context(), req); d.Results()[0].Remaining != 6 {
			t.Errorf("%s: got %d left after taking 6 and giving 2, want 6", limit, d.Results()[0].Remaining)
		}
	}
}

func TestKeyOf_IsTheKeyThatACheckWrites(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{})
	store := redisstore.New(rueidisConn(t, rueidisconn.Options{Addrs: []string{server.Addr()}}), redisstore.Options{})
	rules := sluice.PerKey(sluice.PerDay(10))
	l := sluice.New(store, rules, sluice.Options{Timeout: time.Second})
	req := sluice.Request{Subject: sluice.Subject{User: "u_42"}}
	if _, err := l.Check(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	matched := rules.Match(nil, &req)[0]
	key := store.KeyOf(matched.Key(&req), matched.Rule.Limits[0])
	if n, err := server.Do("EXISTS", key); err != nil || n.(int64) != 1 {
		t.Errorf("key %s: EXISTS says %v, %v; want 1", key, n, err)
	}
}
