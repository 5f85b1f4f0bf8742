package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

// lingering is a client that answers its caller when the context ends and goes on with the call, as pipelining clients
// do: it still reads the call's slices then, which the race detector watches. (rueidis itself would sometimes close the
// connection instead, at the expense of whoever shares it.)
type lingering struct {
	redisstore.Conn
	wait sync.WaitGroup
}

func (l *lingering) Run(ctx context.Context, calls []*redisstore.Call) {
	copies := make([]*redisstore.Call, len(calls))
	for i, c := range calls {
		copies[i] = &redisstore.Call{Script: c.Script, Keys: c.Keys, Args: c.Args}
	}
	done := make(chan struct{})
	l.wait.Go(func() {
		defer close(done)
		l.Conn.Run(context.WithoutCancel(ctx), copies)
	})
	select {
	case <-done:
		for i, c := range calls {
			c.Out, c.Err = append(c.Out, copies[i].Out...), copies[i].Err
		}
	case <-ctx.Done():
		for _, c := range calls {
			c.Err = ctx.Err()
		}
	}
}

// Callers share script calls. One who gives up while queued, while his charge travels or while he leads must neither be
// counted twice nor spoil the others' answers.
func TestTake_CallersWhoGiveUpSpoilNothingForOthers(t *testing.T) {
	t.Parallel()
	const hasty, patient, each = 24, 8, 150
	server := testredis.Single(t, testredis.Options{})
	conn := &lingering{Conn: rueidisConn(t, rueidisconn.Options{Addrs: []string{server.Addr()}})}
	t.Cleanup(conn.wait.Wait)
	store := redisstore.New(conn, redisstore.Options{})
	takeOne(t.Context(), store, hourly("warm-up", 10, 1)) // the connection stands

	type tally struct{ taken, unknown int64 }
	tallies := make([]tally, hasty+patient)
	everyone := hourly("everyone", 1<<40, 1)
	own := func(i int) sluice.Charge { return hourly(fmt.Sprintf("caller-%d", i), 1<<40, 1) }
	var wg sync.WaitGroup
	for i := range tallies {
		wg.Go(func() {
			for range each {
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				switch patience := rand.N(2 * time.Millisecond); {
				case i < hasty/2: // their time is short
					ctx, cancel = context.WithTimeout(ctx, patience)
				case i < hasty: // they hang up
					ctx, cancel = context.WithCancel(ctx)
					time.AfterFunc(patience, cancel)
				}
				group := []sluice.Charge{own(i), everyone}
				store.Take(ctx, [][]sluice.Charge{group})
				cancel()
				switch err := group[0].State.Err; {
				case err == nil:
					tallies[i].taken++
				case i >= hasty:
					t.Errorf("a patient caller was told: %v", err)
				case !errors.Is(err, sluice.ErrUnavailable):
					t.Errorf("a hasty caller was told %v, want ErrUnavailable", err)
				default:
					tallies[i].unknown++
				}
			}
		})
	}
	wg.Wait()
	conn.wait.Wait() // what nobody waits for any more is counted, too

	var all tally
	for i, c := range tallies {
		all.taken += c.taken
		all.unknown += c.unknown
		if got := used(t, store, own(i)); got < c.taken || got > c.taken+c.unknown {
			t.Errorf("caller %d, %d taken and %d unknown: got %d counted", i, c.taken, c.unknown, got)
		}
	}
	if got := used(t, store, everyone); got < all.taken || got > all.taken+all.unknown {
		t.Errorf("%d taken and %d unknown: got %d counted", all.taken, all.unknown, got)
	}
	t.Logf("%d taken, %d gave up", all.taken, all.unknown)
}
