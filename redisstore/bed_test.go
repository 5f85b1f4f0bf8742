package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

// differentialBed is a real Redis whose clock stands still, a store on it that tells what it sends, and a client to look
// at what is stored.
type differentialBed struct {
	clock *testredis.Clock
	store *redisstore.Store
	calls *recorder
	look  *redis.Client
	ran   map[string]int // script runs compared, by name
}

func newBed(t *testing.T) *differentialBed {
	t.Helper()
	server := testredis.Single(t, testredis.Options{MovableClock: true, Config: []string{"--enable-debug-command", "yes"}})
	// Redis also drops expired keys in the background, by a timer of real time: with a clock that steps back and forth it
	// would be chance whether a key is gone. Expiry upon access stays on.
	if _, err := server.Do("DEBUG", "SET-ACTIVE-EXPIRE", "0"); err != nil {
		t.Fatal(err)
	}
	calls := &recorder{Conn: rueidisConn(t, rueidisconn.Options{Addrs: []string{server.Addr()}})}
	look := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = look.Close() })
	return &differentialBed{server.Clock(), redisstore.New(calls, redisstore.Options{}), calls, look, map[string]int{}}
}

func (b *differentialBed) flush(t *rapid.T) {
	t.Helper()
	if err := b.look.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
}

// replies returns a call's integers without the time some scripts tell, which must be the clock's.
func (b *differentialBed) replies(call *redisstore.Call) []int64 {
	if name := call.Script.Name; name != "take" && name != "peek" {
		return call.Out
	}
	if call.Out[0] != b.clock.Now().UnixMicro() {
		return call.Out
	}
	return call.Out[1:]
}

// stored reads what Redis holds in the words of twin.stored.
func (b *differentialBed) stored(t *rapid.T, key string) string {
	t.Helper()
	ctx := t.Context()
	ttl := b.look.Do(ctx, "PTTL", key)
	left, err := ttl.Int64()
	if err != nil {
		t.Fatal(err)
	}
	if left == -2 {
		return "nothing"
	}
	value, err := b.look.Get(ctx, key).Result()
	if err == nil {
		return fmt.Sprintf("%s for %d ms", value, left)
	}
	entries, err := b.look.ZRangeWithScores(ctx, key, 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	members := make([]string, len(entries))
	for i, e := range entries {
		members[i] = fmt.Sprintf("%.0f %s", e.Score, e.Member)
	}
	slices.Sort(members)
	return fmt.Sprintf("%v for %d ms", members, left)
}

// recorder is a connection that remembers the calls made through it.
type recorder struct {
	redisstore.Conn
	mu    sync.Mutex
	calls []*redisstore.Call
}

func (r *recorder) Run(ctx context.Context, calls []*redisstore.Call) {
	r.Conn.Run(ctx, calls)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range calls {
		seen := &redisstore.Call{Script: c.Script, Out: slices.Clone(c.Out), Err: c.Err}
		for _, k := range c.Keys { // the store reuses the memory of these strings
			seen.Keys = append(seen.Keys, string([]byte(k)))
		}
		for _, a := range c.Args {
			seen.Args = append(seen.Args, string([]byte(a)))
		}
		r.calls = append(r.calls, seen)
	}
}

func (r *recorder) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = nil
}

// only returns the one call made, nil for none. On a single server no step needs two.
func (r *recorder) only(t *rapid.T) *redisstore.Call {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch len(r.calls) {
	case 0:
		return nil
	case 1:
		return r.calls[0]
	}
	t.Fatal(errors.New("one step made several calls"))
	return nil
}
