package directory

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
)

// cache keeps what was looked up about subjects, in a table of fixed size. It holds no names, only hashes of 128 bits under seeds of this
// process: a subject costs 32 bytes where nothing but its tier is on record, and nobody can choose names that meet in one place. It
// is safe for concurrent use.
type cache struct {
	seeds   [dimensions][2]maphash.Seed
	buckets []bucket
	locks   [lockStripes]sync.Mutex // of bucket number n: n%lockStripes
	// rich is about how many bytes records take that are not shared by many subjects.
	rich, maxRich atomic.Int64
}

const (
	// lockStripes: more make it less likely that two requests meet at one; each takes 8 bytes.
	lockStripes = 4096
	ways        = 8
	// richScan is how many buckets are searched for something to let go of when too many bytes are in use. One in ten subjects with an override
	// of its own means that the first bucket mostly has one.
	richScan = 64
)

// bucket holds the subjects whose hash leads to it.
type bucket struct {
	slots [ways]slot
}

type slot struct {
	name   name
	record *record // nil: the slot is free
	loaded tick
	// used is set by every look, and taken back when a place is sought: what nobody asked for twice goes first.
	used bool
}

// name is the hash of a subject's dimension and id.
type name struct{ hi, lo uint64 }

// dimension is what kind of name a subject has.
type dimension uint8

const (
	apiKey dimension = iota
	user
	tenant
	dimensions
)

func (d dimension) String() string { return [...]string{"api_key", "user", "tenant"}[d] }

// tick is a time in tenths of a second since the process began.
type tick uint32

func newCache(entries int, maxRich int64) *cache {
	n := max(1, entries/ways)
	c := &cache{buckets: make([]bucket, 1<<bits.Len(uint(n-1)))}
	c.maxRich.Store(maxRich)
	for i := range c.buckets {
		// Memory that was never written to is read faster, by which one could tell who is not in it; and it is taken sooner or later anyway.
		c.buckets[i].slots[0].loaded = 1
	}
	for d := range c.seeds {
		c.seeds[d] = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	}
	return c
}

// nameOf hashes a subject's name.
func (c *cache) nameOf(d dimension, id string) name {
	return name{maphash.String(c.seeds[d][0], id), maphash.String(c.seeds[d][1], id)}
}

func (c *cache) at(n name) int { return int(n.lo & uint64(len(c.buckets)-1)) }

// get returns what is known about a subject and since when; nil: nothing.
func (c *cache) get(n name) (*record, tick) {
	i := c.at(n)
	lock := &c.locks[i%lockStripes]
	lock.Lock()
	defer lock.Unlock()
	b := &c.buckets[i]
	for j := range b.slots {
		if s := &b.slots[j]; s.name == n && s.record != nil {
			s.used = true
			return s.record, s.loaded
		}
	}
	return nil, 0
}

// put keeps what was looked up.
func (c *cache) put(n name, r *record, at tick) {
	i := c.at(n)
	c.within(i, func(b *bucket) {
		c.set(b.place(n), slot{name: n, record: r, loaded: at})
	})
	for j := 0; j < richScan && c.rich.Load() > c.maxRich.Load(); j++ {
		c.within((i+j)%len(c.buckets), func(b *bucket) { c.lighten(b, n) })
	}
}

func (c *cache) within(i int, fn func(*bucket)) {
	lock := &c.locks[i%lockStripes]
	lock.Lock()
	defer lock.Unlock()
	fn(&c.buckets[i])
}

// place finds a slot: the subject's own, a free one, or the one to let go of.
func (b *bucket) place(n name) *slot {
	var free, idle *slot
	for j := range b.slots {
		switch s := &b.slots[j]; {
		case s.name == n && s.record != nil:
			return s
		case s.record == nil:
			free = s
		case !s.used && (idle == nil || s.loaded < idle.loaded):
			idle = s
		}
	}
	if free != nil {
		return free
	}
	if idle != nil {
		return idle
	}
	for j := range b.slots {
		b.slots[j].used = false
	}
	return &b.slots[n.hi%ways]
}

// set puts something into a slot and keeps count of bytes.
func (c *cache) set(s *slot, to slot) {
	if s.record != nil {
		c.rich.Add(-int64(s.record.weight))
	}
	if to.record != nil {
		c.rich.Add(int64(to.record.weight))
		to.used = s.used && s.name == to.name
	}
	*s = to
}

// lighten lets go of the heavy records of a bucket, except that of one subject.
func (c *cache) lighten(b *bucket, but name) {
	for j := range b.slots {
		if s := &b.slots[j]; s.record != nil && s.record.weight > 0 && s.name != but {
			c.set(s, slot{})
		}
	}
}

// drop forgets a subject.
func (c *cache) drop(n name) {
	c.within(c.at(n), func(b *bucket) {
		for j := range b.slots {
			if s := &b.slots[j]; s.name == n {
				c.set(s, slot{})
			}
		}
	})
}
