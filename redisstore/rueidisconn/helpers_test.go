package rueidisconn

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
)

// patience is how long a test waits for what must come. Only a broken one waits that long.
const patience = 30 * time.Second

// incr counts how often it has been run on a key.
var incr = redisstore.NewScript("incr", "return redis.call('INCRBY',KEYS[1],1)")

func open(t *testing.T, opts Options) *Conn {
	t.Helper()
	conn, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// count runs incr on a key and returns how often that has been done.
func count(ctx context.Context, conn *Conn, key string) (int64, error) {
	call := &redisstore.Call{Script: incr, Keys: []string{key}}
	conn.Run(ctx, []*redisstore.Call{call})
	if call.Err == nil && len(call.Out) != 1 {
		return 0, errors.New("no reply and no error")
	}
	return append(call.Out, 0)[0], call.Err
}

// within is count with a deadline.
func within(t *testing.T, d time.Duration, conn *Conn, key string) (int64, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	return count(ctx, conn, key)
}

func mustCount(t *testing.T, conn *Conn, key string) int64 {
	t.Helper()
	n, err := within(t, patience, conn, key)
	if err != nil {
		t.Fatalf("count %s: %v", key, err)
	}
	return n
}

// eventually waits until cond returns nil.
func eventually(t *testing.T, what string, cond func() error) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := cond()
		if err == nil {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("%s: not within %v: %v", what, patience, err)
		case <-tick.C:
		}
	}
}

// untilOpen asks for a key until its breaker is open, and returns how many calls were sent in vain.
func untilOpen(t *testing.T, conn *Conn, key string) (sent int64) {
	t.Helper()
	eventually(t, "breaker opens", func() error {
		_, err := within(t, 50*time.Millisecond, conn, key)
		if errors.Is(err, ErrBreakerOpen) {
			return nil
		}
		sent++
		if err == nil {
			return errors.New("the call was answered")
		}
		return err
	})
	return sent
}

func do(t *testing.T, server *testredis.Server, args ...string) any {
	t.Helper()
	v, err := server.Do(args...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// event is what OnBreaker was told.
type event struct {
	shard string
	open  bool
}

// listen returns a function for Options.OnBreaker and the channel it fills.
func listen() (func(string, bool), chan event) {
	events := make(chan event, 100)
	return func(shard string, open bool) { events <- event{shard, open} }, events
}

func wantEvent(t *testing.T, events chan event, want event) {
	t.Helper()
	select {
	case got := <-events:
		if got != want {
			t.Fatalf("OnBreaker: got %+v, want %+v", got, want)
		}
	case <-time.After(patience):
		t.Fatalf("OnBreaker: got nothing, want %+v", want)
	}
}

// daily is a charge of one unit, at most limit a day for a user.
func daily(user string, limit int64) sluice.Charge {
	return sluice.Charge{
		Key:   sluice.Key{Namespace: "n", Rule: "daily", Parts: []sluice.Part{{Dimension: sluice.User, Value: user}}},
		Limit: sluice.Limit{Algorithm: sluice.FixedWindow, Limit: limit, Window: 24 * time.Hour},
		Cost:  1,
	}
}

func take(ctx context.Context, store sluice.Store, c sluice.Charge) sluice.State {
	group := []sluice.Charge{c}
	store.Take(ctx, [][]sluice.Charge{group})
	return group[0].State
}
