package rueidisconn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
)

// labelled runs f with a label that every goroutine started below it inherits, however deep inside a client.
func labelled(t *testing.T, f func()) {
	t.Helper()
	pprof.Do(t.Context(), pprof.Labels("sluicetest", t.Name()), func(context.Context) { f() })
}

// goroutines returns the stacks of those that labelled has left behind.
func goroutines(t *testing.T) string {
	t.Helper()
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		t.Fatal(err)
	}
	var left []string
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(stack, fmt.Sprintf("%q:%q", "sluicetest", t.Name())) {
			left = append(left, stack)
		}
	}
	return strings.Join(left, "\n\n")
}

func TestClose_LeavesNoGoroutine(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{})
	key := redisstore.ProbeKey(nil)
	for _, c := range []struct {
		name string
		use  func(*testing.T, *Conn)
	}{
		{"unused", func(*testing.T, *Conn) {}},
		{"used", func(t *testing.T, conn *Conn) {
			var wg sync.WaitGroup
			for range 100 { // side by side, so that rueidis starts to pipeline them
				wg.Go(func() { _, _ = count(t.Context(), conn, key) })
			}
			wg.Wait()
		}},
		{"probing", func(t *testing.T, conn *Conn) {
			mustCount(t, conn, key)
			server.Pause()
			t.Cleanup(server.Resume)
			untilOpen(t, conn, key)
			eventually(t, "the test sees the probing goroutine", func() error {
				if left := goroutines(t); !strings.Contains(left, "probeUntilClosed") {
					return errors.New(left)
				}
				return nil
			})
		}},
		{"dialling", func(t *testing.T, conn *Conn) { // the paused server accepts and says nothing
			server.Pause()
			t.Cleanup(server.Resume)
			_, _ = within(t, time.Millisecond, conn, key)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			labelled(t, func() {
				conn, err := New(Options{Addrs: []string{server.Addr()}, Timeout: 200 * time.Millisecond, DialTimeout: 200 * time.Millisecond})
				if err != nil {
					t.Fatal(err)
				}
				c.use(t, conn)
				conn.Close()
				if _, err := count(t.Context(), conn, key); err == nil || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("call after Close: got %v, want an error at once", err)
				}
				conn.Close() // a second one does nothing
			})
			eventually(t, "all goroutines end", func() error {
				if left := goroutines(t); left != "" {
					return errors.New(left)
				}
				return nil
			})
		})
	}
}

// A probe that started while Close waits, or a client stored after it, would be left behind.
func TestClose_WhileCallsFail(t *testing.T) {
	t.Parallel()
	server := testredis.Single(t, testredis.Options{})
	server.Kill()
	key := redisstore.ProbeKey(nil)
	labelled(t, func() {
		for range 50 {
			conn, err := New(Options{Addrs: []string{server.Addr()}})
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for range openAfter {
						_, _ = count(t.Context(), conn, key)
						conn.shards.Load().breakerOf(key).record(errDown)
					}
				})
			}
			conn.Close()
			wg.Wait()
		}
	})
	eventually(t, "all goroutines end", func() error {
		if left := goroutines(t); left != "" {
			return errors.New(left)
		}
		return nil
	})
}
