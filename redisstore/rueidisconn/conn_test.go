package rueidisconn

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
)

func TestNew_DoesNotDial(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn := open(t, Options{Addrs: []string{l.Addr().String()}})
	redisstore.New(conn, redisstore.Options{})
	conn.Close() // waits for whatever it has started

	ours, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	first, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if got, want := first.RemoteAddr().String(), ours.LocalAddr().String(); got != want {
		t.Errorf("the first connection is from %s, want the test's own, %s", got, want)
	}
}

func TestStore_MadeWhileRedisIsDownIsExactOnceItIsUp(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{})
	server.Kill()
	conn := open(t, Options{Addrs: []string{server.Addr()}})
	store := redisstore.New(conn, redisstore.Options{})
	const limit = 5
	charge := daily("a", limit)
	for i := range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		s := take(ctx, store, charge)
		cancel()
		if !errors.Is(s.Err, sluice.ErrUnavailable) || s.Allowed {
			t.Fatalf("take %d while Redis is down: got %+v, want ErrUnavailable", i, s)
		}
	}
	server.Restart()
	eventually(t, "the store answers", func() error { return take(t.Context(), store, charge).Err })
	for i := range 2 * limit { // one has been taken
		if s := take(t.Context(), store, charge); s.Err != nil || s.Allowed != (i < limit-1) {
			t.Fatalf("take %d after the first: got %+v, want allowed=%v", i, s, i < limit-1)
		}
	}
}

func TestRun_PausedRedisCostsAFewDeadlinesAndThenNothing(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{})
	onBreaker, events := listen()
	conn := open(t, Options{Addrs: []string{server.Addr()}, OnBreaker: onBreaker, Timeout: 200 * time.Millisecond})
	key := redisstore.ProbeKey(nil)
	answered := mustCount(t, conn, key)
	server.Pause()

	start := time.Now()
	_, err := within(t, 50*time.Millisecond, conn, key)
	if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > patience/2 {
		t.Errorf("paused, deadline in 50 ms: got %v after %v, want the deadline's error about then", err, took)
	}
	start = time.Now()
	_, err = count(t.Context(), conn, key)
	if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > patience/2 {
		t.Errorf("paused, no deadline: got %v after %v, want the error of Options.Timeout about then", err, took)
	}
	sent := 2 + untilOpen(t, conn, key)
	if sent < openAfter {
		t.Errorf("open after %d failures, want %d at least", sent, openAfter)
	}
	wantEvent(t, events, event{"redis", true})

	const refused = 1000
	start = time.Now()
	for i := range refused {
		if _, err := count(t.Context(), conn, key); !errors.Is(err, ErrBreakerOpen) {
			t.Fatalf("call %d on an open breaker: got %v, want ErrBreakerOpen", i, err)
		}
		calls := []*redisstore.Call{{Script: incr, Keys: []string{key}}, {Script: incr, Keys: []string{key}}}
		conn.Run(t.Context(), calls)
		for _, call := range calls {
			if !errors.Is(call.Err, ErrBreakerOpen) {
				t.Fatalf("call %d of two on an open breaker: got %v, want ErrBreakerOpen", i, call.Err)
			}
		}
	}
	if took := time.Since(start); took > patience/2 {
		t.Errorf("%d calls on an open breaker took %v, as if they waited for Redis", refused, took)
	}

	server.Resume()
	var got int64
	eventually(t, "calls succeed after Resume", func() (err error) {
		got, err = within(t, patience, conn, key)
		return err
	})
	wantEvent(t, events, event{"redis", false})
	// Which of those in vain had reached Redis is unknown; those refused must not have.
	if most := answered + sent + 1; got > most {
		t.Errorf("got %d counted, want at most %d: calls on an open breaker have reached Redis", got, most)
	}
}

func TestRun_CancelledCallsDoNotOpenTheBreaker(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{})
	conn := open(t, Options{Addrs: []string{server.Addr()}})
	key := redisstore.ProbeKey(nil)
	mustCount(t, conn, key)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	broken := redisstore.NewScript("broken", "error('broken')")
	for range 10 * openAfter {
		if _, err := count(ctx, conn, key); !errors.Is(err, context.Canceled) {
			t.Fatalf("cancelled call: got %v, want context.Canceled", err)
		}
		call := &redisstore.Call{Script: broken, Keys: []string{key}}
		if conn.Run(t.Context(), []*redisstore.Call{call}); call.Err == nil || errors.Is(call.Err, ErrBreakerOpen) {
			t.Fatalf("broken script: got error %v, want its own", call.Err)
		}
	}
	mustCount(t, conn, key)
}

func TestRun_ServerThatCannotServeOpensTheBreaker(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{})
	onBreaker, events := listen()
	conn := open(t, Options{Addrs: []string{server.Addr()}, OnBreaker: onBreaker})
	key := redisstore.ProbeKey(nil)
	mustCount(t, conn, key)
	do(t, server, "REPLICAOF", "127.0.0.1", "1") // demoted: it answers READONLY
	untilOpen(t, conn, key)
	wantEvent(t, events, event{"redis", true})
	do(t, server, "REPLICAOF", "NO", "ONE")
	eventually(t, "calls succeed again", func() error {
		_, err := within(t, patience, conn, key)
		return err
	})
	wantEvent(t, events, event{"redis", false})
}

func TestRun_SendsScriptsTheServerForgot(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{})
	conn := open(t, Options{Addrs: []string{server.Addr()}})
	for want := range int64(5) {
		do(t, server, "SCRIPT", "FLUSH")
		calls := []*redisstore.Call{{Script: incr, Keys: []string{"a"}}, {Script: incr, Keys: []string{"b"}}}
		conn.Run(t.Context(), calls)
		for i, call := range calls {
			if call.Err != nil || len(call.Out) != 1 || call.Out[0] != want+1 {
				t.Fatalf("call %d: got %v, error %v, want %d", i, call.Out, call.Err, want+1)
			}
		}
	}
}

func TestRun_OtherRepliesThanIntegersAreErrors(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{})
	conn := open(t, Options{Addrs: []string{server.Addr()}})
	for _, text := range []string{
		"return 'text'", "return false", "return {1,'text'}", "return {1,{2}}", "return {false}",
		"return redis.error_reply('ERR of its own')", "return redis.status_reply('OK')", "no Lua",
	} {
		call := &redisstore.Call{Script: redisstore.NewScript("odd", text), Keys: []string{"a"}}
		conn.Run(t.Context(), []*redisstore.Call{call})
		if call.Err == nil {
			t.Errorf("%s: got %v, want an error", text, call.Out)
		}
	}
	mustCount(t, conn, "a")
}
