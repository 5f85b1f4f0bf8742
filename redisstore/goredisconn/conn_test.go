package goredisconn

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
)

func TestNew_RefusesClientsThatRetry(t *testing.T) {
	t.Parallel()
	single := func(retries int) redis.UniversalClient {
		return redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: retries})
	}
	cluster := func(retries, redirects int) redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, MaxRetries: retries, MaxRedirects: redirects})
	}
	for _, c := range []struct {
		name   string
		client redis.UniversalClient
		want   string // in the error; empty: none
	}{
		{"single, by default", single(0), "MaxRetries: -1"},
		{"single, once", single(1), "MaxRetries: -1"},
		{"single, never", single(-1), ""},
		{"cluster, by default", cluster(0, 0), ""},
		{"cluster, never and no redirections", cluster(-1, -1), ""},
		{"cluster, twice", cluster(2, 0), "MaxRetries: -1"},
		{"ring", redis.NewRing(&redis.RingOptions{MaxRetries: -1}), "*redis.Ring"},
	} {
		t.Cleanup(func() { _ = c.client.Close() })
		conn, err := New(c.client)
		switch {
		case c.want == "" && (err != nil || conn == nil):
			t.Errorf("%s: got error %v, want none", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got error %v, want one that names %s", c.name, err, c.want)
		}
	}
}

func TestRun_SendsScriptsTheServerForgot(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{})
	conn := open(t, redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1}))
	wantCounts(t, conn, 1, "a")
	wantCounts(t, conn, 2, "a")
	do(t, server, "SCRIPT", "FLUSH")
	wantCounts(t, conn, 3, "a")
	do(t, server, "SCRIPT", "FLUSH")
	wantCounts(t, conn, 1, "b", "c", "d", "e")
	wantCounts(t, conn, 2, "b", "c", "d", "e")
}

func TestRun_PassesKeysAndArgumentsAndReadsIntegers(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{})
	conn := open(t, redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1}))
	call := &redisstore.Call{
		Script: redisstore.NewScript("all", "return {#KEYS, #ARGV, ARGV[1]+0, ARGV[2]+0, -7}"),
		Keys:   []string{"a", "b", "c"},
		Args:   []string{"41", "9007199254740992"},
	}
	conn.Run(t.Context(), []*redisstore.Call{call})
	want := [5]int64{3, 2, 41, 1 << 53, -7}
	if call.Err != nil || len(call.Out) != 5 || [5]int64(call.Out) != want {
		t.Errorf("got %v, error %v, want %v", call.Out, call.Err, want)
	}
}

func TestRun_OtherRepliesThanIntegersAreErrors(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{})
	conn := open(t, redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1}))
	for _, text := range []string{
		"return 'text'", "return false", "return {1,'text'}", "return {1,{2}}", "return {false}",
		"return redis.error_reply('ERR of its own')", "return redis.status_reply('OK')", "error('broken')", "no Lua",
	} {
		call := run(t, conn, redisstore.NewScript("odd", text), "a")[0]
		if call.Err == nil {
			t.Errorf("%s: got %v, want an error", text, call.Out)
		}
	}
	wantCounts(t, conn, 1, "a") // the connection is still in step
}

// A lost reply may have been counted: it is an error, and the command is never sent again.
func TestRun_LostReplyIsNotReplayed(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{})
	cluster := testredis.Cluster(t, testredis.Options{NoReplicas: true})
	node := cluster.NodeBySlot(0)
	keys := []string{keyAt(cluster, node, 0), keyAt(cluster, node, 1), keyAt(cluster, node, 2)}
	timeout := 300 * time.Millisecond // after which go-redis gives up waiting, and would send again
	for _, c := range []struct {
		name   string
		target *testredis.Server
		open   func(*thief) redis.UniversalClient
	}{
		{"single", server, func(th *thief) redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1, Dialer: th.dial, ReadTimeout: timeout})
		}},
		{"cluster", node, func(th *thief) redis.UniversalClient { // MaxRedirects at its default of 3
			return redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), Dialer: th.dial, ReadTimeout: timeout})
		}},
	} {
		for how, mode := range map[string]int32{"connection cut": cut, "no answer": silence} {
			for what, keys := range map[string][]string{"one call": keys[:1], "pipeline": keys} {
				t.Run(c.name+"/"+how+"/"+what, func(t *testing.T) {
					th := new(thief)
					conn := open(t, c.open(th))
					do(t, c.target, "FLUSHALL")
					wantCounts(t, conn, 1, keys...)
					th.mode.Store(mode)
					lost := 0
					for _, call := range run(t, conn, incr, keys...) {
						if call.Err != nil {
							lost++
						}
					}
					if lost == 0 || th.mode.Load() != forward {
						t.Fatal("every call was answered: no reply was lost, or the command was sent again")
					}
					wantCounts(t, conn, 3, keys...)
				})
			}
		}
	}
}

// What New's documentation says of ContextTimeoutEnabled.
func TestRun_EndsAtTheDeadlineOfTheCall(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{})
	conn := open(t, redis.NewClient(&redis.Options{
		Addr: server.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true, ReadTimeout: time.Hour,
	}))
	wantCounts(t, conn, 1, "a")
	server.Pause()
	defer server.Resume()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	call := &redisstore.Call{Script: incr, Keys: []string{"a"}}
	start := time.Now()
	conn.Run(ctx, []*redisstore.Call{call})
	if took := time.Since(start); call.Err == nil || took > patience/2 {
		t.Errorf("got error %v after %v, want one soon after 50 ms", call.Err, took)
	}
}
