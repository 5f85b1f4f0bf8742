package redisstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

// hourly is a charge whose use can be read from Redis: at most limit an hour for a user.
func hourly(user string, limit, cost int64) sluice.Charge {
	return sluice.Charge{
		Key:   sluice.Key{Namespace: "n", Rule: "hourly", Parts: []sluice.Part{{Dimension: sluice.User, Value: user}}},
		Limit: sluice.Limit{Algorithm: sluice.FixedWindow, Limit: limit, Window: time.Hour},
		Cost:  cost,
	}
}

// with returns the charge under another algorithm: another counter of the same user.
func with(a sluice.Algorithm, c sluice.Charge) sluice.Charge {
	c.Limit.Algorithm = a
	return c
}

// bothClients open a connection to one server.
var bothClients = map[string]func(t *testing.T, addr string) redisstore.Conn{
	"rueidis": func(t *testing.T, addr string) redisstore.Conn {
		return rueidisConn(t, rueidisconn.Options{Addrs: []string{addr}})
	},
	"go-redis": func(t *testing.T, addr string) redisstore.Conn {
		return goredisConn(t, redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true}))
	},
}

// takeOne takes one charge and returns its state.
func takeOne(ctx context.Context, store sluice.Store, c sluice.Charge) sluice.State {
	group := []sluice.Charge{c}
	store.Take(ctx, [][]sluice.Charge{group})
	return group[0].State
}

// used asks the store how much of a charge's limit is used.
func used(t *testing.T, store sluice.Store, c sluice.Charge) int64 {
	t.Helper()
	group := []sluice.Charge{c}
	store.Peek(t.Context(), [][]sluice.Charge{group})
	if err := group[0].State.Err; err != nil {
		t.Fatalf("peek %v: %v", c.Key, err)
	}
	return c.Limit.Limit - group[0].State.Remaining
}

func TestTake_BatchWithARefusedGroupAndALog(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{MovableClock: true})
	server.Clock().Freeze(starts[0])
	store := redisstore.New(rueidisConn(t, rueidisconn.Options{Addrs: []string{server.Addr()}}), redisstore.Options{})

	window, log, bucket, full := hourly("a", 10, 2), with(sluice.SlidingLog, hourly("b", 10, 3)), with(sluice.TokenBucket, hourly("c", 10, 4)), hourly("d", 5, 6)
	groups := [][]sluice.Charge{{window}, {log, full}, {bucket, log}, {full, with(sluice.SlidingWindow, hourly("e", 10, 1))}, {log}}
	store.Take(t.Context(), groups)
	for i, want := range []bool{true, false, true, false, true} {
		got := true
		for _, c := range groups[i] {
			if c.State.Err != nil {
				t.Fatalf("group %d: %v", i, c.State.Err)
			}
			got = got && c.State.Allowed
		}
		if got != want {
			t.Errorf("group %d: got taken=%v, want %v", i, got, want)
		}
	}
	for _, c := range []struct {
		charge sluice.Charge
		want   int64
	}{{window, 2}, {log, 6}, {bucket, 4}, {full, 0}, {with(sluice.SlidingWindow, hourly("e", 10, 1)), 0}} {
		if got := used(t, store, c.charge); got != c.want {
			t.Errorf("%v %s: got %d used, want %d", c.charge.Key, c.charge.Limit, got, c.want)
		}
	}
}

func TestTake_GoesOnWhenTheServerForgetsItsScripts(t *testing.T) {
	t.Parallel()
	for name, open := range bothClients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testredis.Single(t, testredis.Options{})
			store := redisstore.New(open(t, server.Addr()), redisstore.Options{})
			alone, first, second := hourly("a", 100, 1), hourly("b", 100, 1), with(sluice.SlidingLog, hourly("b", 100, 1))
			for i := range 10 {
				if _, err := server.Do("SCRIPT", "FLUSH"); err != nil {
					t.Fatal(err)
				}
				if s := takeOne(t.Context(), store, alone); s.Err != nil || !s.Allowed {
					t.Fatalf("take %d: got %+v, want allowed", i, s)
				}
				pair := []sluice.Charge{first, second}
				store.Take(t.Context(), [][]sluice.Charge{pair})
				if pair[0].State.Err != nil || pair[1].State.Err != nil {
					t.Fatalf("take %d of two limits: %v, %v", i, pair[0].State.Err, pair[1].State.Err)
				}
			}
			for _, c := range []sluice.Charge{alone, first, second} {
				if got := used(t, store, c); got != 10 {
					t.Errorf("%s: got %d counted, want each of 10 takes once", c.Limit, got)
				}
			}
		})
	}
}

// A call whose reply is lost may have been done: it is told as an error and never sent again.
func TestTake_LostReplyIsNotReplayed(t *testing.T) {
	t.Parallel()
	const takes, lost = 12, 6
	for name, open := range bothClients {
		for how, loss := range map[string]int32{"connection cut": cut, "no answer": blackhole} {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				server := testredis.Single(t, testredis.Options{})
				p := newProxy(t, server.Addr())
				store := redisstore.New(open(t, p.addr()), redisstore.Options{})
				charge := hourly("a", 100, 1)
				for i := range takes {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					if i == lost {
						p.lose.Store(loss)
						if loss == blackhole {
							cancel()
							ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
						}
					}
					s := takeOne(ctx, store, charge)
					cancel()
					if i == lost && !errors.Is(s.Err, sluice.ErrUnavailable) {
						t.Fatalf("take %d, whose reply was lost: got %+v, want ErrUnavailable", i, s)
					}
					if i != lost && s.Err != nil {
						t.Fatalf("take %d: %v", i, s.Err)
					}
					if i == lost {
						p.closeHoles() // else later takes on that connection would hang, too
					}
				}
				direct := redisstore.New(rueidisConn(t, rueidisconn.Options{Addrs: []string{server.Addr()}}), redisstore.Options{})
				if got := used(t, direct, charge); got != takes {
					t.Errorf("%d takes, one reply lost: got %d counted, want each exactly once", takes, got)
				}
			})
		}
	}
}

func TestTake_KeyOfAnotherTypeIsAnError(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{})
	calls := &recorder{Conn: rueidisConn(t, rueidisconn.Options{Addrs: []string{server.Addr()}})}
	store := redisstore.New(calls, redisstore.Options{})
	for _, a := range []sluice.Algorithm{sluice.FixedWindow, sluice.SlidingWindow, sluice.SlidingLog, sluice.TokenBucket} {
		t.Run(a.String(), func(t *testing.T) {
			charge := with(a, hourly("a", 10, 1))
			calls.forget()
			used(t, store, charge)
			key := calls.calls[0].Keys[0]
			if _, err := server.Do("HSET", key, "field", "value"); err != nil {
				t.Fatal(err)
			}
			for _, receipted := range []bool{false, true} { // both frames
				c := charge
				c.Receipted = receipted
				if s := takeOne(t.Context(), store, c); !errors.Is(s.Err, sluice.ErrUnavailable) || s.Allowed {
					t.Errorf("receipted=%v: got %+v, want ErrUnavailable", receipted, s)
				}
				if s := takeOne(t.Context(), store, hourly("other", 100, 1)); s.Err != nil {
					t.Errorf("another group after it: %v", s.Err)
				}
			}
			broken := []sluice.Charge{charge}
			store.Peek(t.Context(), [][]sluice.Charge{broken})
			if !errors.Is(broken[0].State.Err, sluice.ErrUnavailable) {
				t.Errorf("peek: got %+v, want ErrUnavailable", broken[0].State)
			}
			store.Reset(t.Context(), []sluice.Charge{charge}) // forgets whatever is there
			if s := takeOne(t.Context(), store, charge); s.Err != nil || !s.Allowed {
				t.Errorf("after a reset: got %+v, want allowed", s)
			}
		})
	}
}
