// Package memstore keeps counters in the memory of one process: for programs that run once, for tests, and as the
// fallback of a Limiter whose shared store does not answer.
//
// It computes exactly what redisstore's scripts compute. Memory is bounded: past Options.MaxCounters new keys share one
// overflow counter per rule and shard, so a flood of invented keys neither evicts the known ones nor passes unlimited.
package memstore

import (
	"context"
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/algo"
	"github.com/sluicehq/sluice/internal/counter"
)

// Options tune a Store. The zero value works.
type Options struct {
	// MaxCounters bounds the number of counters kept. Default 1,000,000 (about 200 MB).
	MaxCounters int
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Store implements sluice.Store. It is safe for concurrent use.
type Store struct {
	now         func() time.Time
	maxPerShard int
	seed        maphash.Seed
	plans       counter.Plans[struct{}]
	lastID      atomic.Uint64
	scratch     sync.Pool
	shards      [shardCount]shard
}

// shardCount fits the bits of one word, which names the shards a group locks. More shards would contend less.
const shardCount = 64

type shard struct {
	mu       sync.Mutex
	counters map[string]*cell
}

// cell is one counter: a value, or the entries of a log.
type cell struct {
	value   int64
	log     []algo.Entry
	expires int64 // µs
}

// New returns an empty store.
func New(opts Options) *Store {
	if opts.MaxCounters <= 0 {
		opts.MaxCounters = 1_000_000
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	s := &Store{now: opts.Now, maxPerShard: max(opts.MaxCounters/shardCount, 1), seed: maphash.MakeSeed()}
	s.scratch.New = func() any { return new(group) }
	for i := range s.shards {
		s.shards[i].counters = map[string]*cell{}
	}
	return s
}

// Take implements sluice.Store.
func (s *Store) Take(_ context.Context, groups [][]sluice.Charge) {
	s.each(groups, (*group).take)
}

// Peek implements sluice.Store.
func (s *Store) Peek(_ context.Context, groups [][]sluice.Charge) {
	s.each(groups, (*group).peek)
}

// Give implements sluice.Store.
func (s *Store) Give(_ context.Context, charges []sluice.Charge) {
	for i := range charges {
		s.run(charges[i:i+1], (*group).give)
	}
}

// Reset implements sluice.Store.
func (s *Store) Reset(_ context.Context, charges []sluice.Charge) {
	for i := range charges {
		s.run(charges[i:i+1], (*group).reset)
	}
}

// Len returns the number of counters kept, expired ones not yet swept included.
func (s *Store) Len() int {
	n := 0
	for i := range s.shards {
		s.shards[i].mu.Lock()
		n += len(s.shards[i].counters)
		s.shards[i].mu.Unlock()
	}
	return n
}

func (s *Store) each(groups [][]sluice.Charge, step func(*group, int64)) {
	for _, charges := range groups {
		s.run(charges, step)
	}
}

// run does one step on a group of charges while holding the locks of all their shards.
func (s *Store) run(charges []sluice.Charge, step func(*group, int64)) {
	g := s.scratch.Get().(*group)
	defer s.scratch.Put(g)
	if err := g.load(s, charges); err != nil {
		counter.Fail(charges, err)
		return
	}
	// Always in ascending order, so that two groups never wait for each other.
	for m := g.shards; m != 0; m &= m - 1 {
		s.shards[bits.TrailingZeros64(m)].mu.Lock()
	}
	step(g, s.now().UnixMicro())
	for m := g.shards; m != 0; m &= m - 1 {
		s.shards[bits.TrailingZeros64(m)].mu.Unlock()
	}
	g.charges = nil
}
