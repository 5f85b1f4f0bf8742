package goredisconn

import (
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
)

// patience is how long a test waits for what must come. Only a broken one waits that long.
const patience = 30 * time.Second

// incr counts how often it has been run on a key.
var incr = redisstore.NewScript("incr", "return redis.call('INCRBY',KEYS[1],1)")

func open(t *testing.T, client redis.UniversalClient) *Conn {
	t.Helper()
	t.Cleanup(func() { _ = client.Close() })
	conn, err := New(client)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// run runs a script on each key, all at once.
func run(t *testing.T, conn *Conn, script *redisstore.Script, keys ...string) []*redisstore.Call {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	calls := make([]*redisstore.Call, len(keys))
	for i, key := range keys {
		calls[i] = &redisstore.Call{Script: script, Keys: []string{key}}
	}
	conn.Run(ctx, calls)
	return calls
}

// wantCounts runs incr on the keys at once and checks each reply.
func wantCounts(t *testing.T, conn *Conn, want int64, keys ...string) {
	t.Helper()
	for i, call := range run(t, conn, incr, keys...) {
		if call.Err != nil || len(call.Out) != 1 || call.Out[0] != want {
			t.Fatalf("call %d of %d on %s: got %v, error %v, want %d", i+1, len(keys), keys[i], call.Out, call.Err, want)
		}
	}
}

// keyAt returns a key in a slot that the node serves, the nth such slot.
func keyAt(cluster *testredis.ClusterSet, node *testredis.Server, nth int) string {
	key := ""
	for slot := 0; nth >= 0; slot += 97 { // nodes have thousands of slots in a row
		if cluster.NodeBySlot(slot) == node {
			key = redisstore.ProbeKey(func(s uint16) bool { return int(s) == slot })
			nth--
		}
	}
	return key
}

func do(t *testing.T, server *testredis.Server, args ...string) any {
	t.Helper()
	v, err := server.Do(args...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// thief loses a reply: what was asked is done, and the client does not know.
type thief struct{ mode atomic.Int32 }

// What becomes of the reply to the next script.
const (
	forward int32 = iota
	cut           // it is lost and the connection closed
	silence       // it is lost and the connection stays
)

func (th *thief) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, addr)
	return &watched{Conn: conn, thief: th}, err
}

// watched is a connection that the thief watches.
type watched struct {
	net.Conn
	thief *thief
	mode  atomic.Int32
}

func (w *watched) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "evalsha") {
		w.mode.CompareAndSwap(forward, w.thief.mode.Swap(forward))
	}
	return w.Conn.Write(b)
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	switch {
	case err != nil || w.mode.Load() == forward:
		return n, err
	case w.mode.Load() == cut:
		_ = w.Close()
		return 0, io.EOF
	default:
		return w.Read(b) // until the deadline
	}
}
