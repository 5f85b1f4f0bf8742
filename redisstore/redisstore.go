// Package redisstore keeps counters in Redis, shared by all nodes: on a single server, behind Sentinel, or in a Cluster.
//
// Every counter is one key holding one integer (a sliding log: a sorted set), changed only by Lua scripts that read the
// server's clock once, check all their limits, and then charge all or none. A script call touches keys of one slot; a
// request whose charges fall into several slots runs one call for each at the same time and gives back what the others
// took when one refuses. Faults so err towards under-admission only, and nothing is locked.
//
// Callers share what they send, a script call on one master or a pipeline to a shard of a Cluster: whoever finds a free
// place sends what has gathered, so a lone caller waits for nobody and many callers pay the round trip together.
package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/algo"
	"github.com/sluicehq/sluice/internal/counter"
)

// Options tune a Store. The zero value works.
type Options struct {
	// HashKey is the secret under which subjects are hashed into Redis keys. All nodes of an installation must use the
	// same. With the published default, anyone can compute on which slot a subject's counters lie.
	// Default: DefaultHashKey.
	HashKey [16]byte
	// NoSharing gives every caller a script call of its own. It is for measuring what sharing gains. Default false.
	NoSharing bool
}

// DefaultHashKey is the published HashKey.
var DefaultHashKey = [16]byte([]byte("sluice-default-0"))

// Store implements sluice.Store on Redis. It is safe for concurrent use.
type Store struct {
	conn    Conn
	hashKey [16]byte
	plans   counter.Plans[preparedArgs]
	ids     logIDs
	sharers []*sharer // one per shard; none where every call goes alone
	shardOf func(key string) int
	tickets sync.Pool
}

// New returns a store on a connection. It does not touch the network.
func New(conn Conn, opts Options) *Store {
	if opts.HashKey == ([16]byte{}) {
		opts.HashKey = DefaultHashKey
	}
	s := &Store{conn: conn, hashKey: opts.HashKey, ids: newLogIDs()}
	s.plans.Prepare = prepareArgs
	s.tickets.New = func() any { return newTicket() }
	if sharder, ok := conn.(Sharder); conn.Sharded() && ok && !opts.NoSharing {
		s.shardOf = sharder.ShardOf
		for range maxSharers {
			s.sharers = append(s.sharers, newSharer(conn, false))
		}
	} else if !conn.Sharded() && !opts.NoSharing {
		s.shardOf = func(string) int { return 0 }
		s.sharers = []*sharer{newSharer(conn, true)}
	}
	return s
}

// Take implements sluice.Store.
func (s *Store) Take(ctx context.Context, groups [][]sluice.Charge) {
	switch {
	case len(groups) == 1:
		s.takeGroup(ctx, groups)
	case s.conn.Sharded():
		s.takeSharded(ctx, groups)
	default:
		s.run(ctx, groups, scriptTake)
	}
}

// takeGroup takes one group, which is nearly always all there is.
func (s *Store) takeGroup(ctx context.Context, group [][]sluice.Charge) {
	t := s.tickets.Get().(*ticket)
	t.load(s, group)
	switch {
	case !t.next(): // invalid, and answered
	case !s.conn.Sharded() || t.oneSlot():
		s.takeWhole(ctx, t)
	default: // the ticket goes with the split
		takeSplits(ctx, s.conn, []*split{newSplit(t, scriptTake)})
	}
}

// takeWhole answers a ticket whose charges go in one call, together with others where that is possible.
func (s *Store) takeWhole(ctx context.Context, t *ticket) {
	var err error
	if len(s.sharers) > 0 {
		err = s.sharers[s.shardOf(t.items[0].key)%len(s.sharers)].do(ctx, t)
	} else {
		err = t.send(ctx, s.conn, scriptTake)
	}
	t.fill(err)
	if err == nil { // else the ticket is left to whoever still holds it: the call's leader, or the client
		t.clear()
		s.tickets.Put(t)
	}
}

// maxSharers bounds the shards that have a sharer of their own; beyond, several use the same, which is only slower.
const maxSharers = 64

// Peek implements sluice.Store.
func (s *Store) Peek(ctx context.Context, groups [][]sluice.Charge) {
	if s.conn.Sharded() {
		s.peekSharded(ctx, groups)
		return
	}
	s.run(ctx, groups, scriptPeek)
}

// run answers groups by calls of their own, as many groups in each as fit, and sends all of them at once.
func (s *Store) run(ctx context.Context, groups [][]sluice.Charge, script *Script) {
	var tickets []*ticket
	var calls []*Call
	t := s.newTicket(groups, 0)
	for t.next() {
		t.prepare(script)
		tickets, calls = append(tickets, t), append(calls, &t.call)
		if t.to == len(groups) {
			break
		}
		t = s.newTicket(groups, t.to)
	}
	if len(calls) == 0 { // every group was invalid, and is answered
		return
	}
	s.conn.Run(ctx, calls)
	for _, t := range tickets {
		t.receive(&t.call, 0)
		t.fill(t.err)
		if t.err == nil { // else the client may still hold what was sent
			t.clear()
			s.tickets.Put(t)
		}
	}
}

// newTicket returns one for the groups from a number on.
func (s *Store) newTicket(groups [][]sluice.Charge, from int) *ticket {
	t := s.tickets.Get().(*ticket)
	t.load(s, groups)
	t.to = from
	return t
}

// unavailable marks an error as the store's failure to answer.
func unavailable(err error) error { return fmt.Errorf("%w: %w", sluice.ErrUnavailable, err) }

// preparedArgs are the script arguments that depend on the limit alone.
type preparedArgs struct {
	kind, cost, limit, window, ttl string // cost of one unit
}

func prepareArgs(p algo.Plan) preparedArgs {
	text := func(n int64) string { return strconv.FormatInt(n, 10) }
	return preparedArgs{kind: string(rune(p.Kind)), cost: text(p.Cost(1)), limit: text(p.Limit), window: text(p.Window), ttl: text(p.TTL)}
}

// logIDs makes the ids that a log's entries carry: unique among all nodes without asking any of them.
type logIDs struct {
	start uint64
	count *atomic.Uint64
}

func newLogIDs() logIDs {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return logIDs{binary.BigEndian.Uint64(b[:]), new(atomic.Uint64)}
}

// next spreads a node's sequence over all 64-bit numbers, so that those of two nodes do not run into each other.
func (l logIDs) next() uint64 {
	x := l.start + l.count.Add(1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return max(x^x>>31, 1)
}
