package memstore

import (
	"bytes"
	"hash/maphash"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/algo"
	"github.com/sluicehq/sluice/internal/counter"
)

// group is the scratch for one group of charges; its methods run while the group's shards are locked.
type group struct {
	store   *Store
	charges []sluice.Charge
	items   []item
	buf     []byte // all encoded keys, one after the other
	shards  uint64 // bit i: shard i is involved
}

type item struct {
	from, to int // its key in buf
	shard    *shard
	plan     *counter.Plan[struct{}]
	cost     int64
	cell     *cell // nil: none yet
	out      algo.Outcome
}

// load encodes the keys and finds plans and shards.
func (g *group) load(s *Store, charges []sluice.Charge) error {
	g.store, g.charges, g.items, g.buf, g.shards = s, charges, g.items[:0], g.buf[:0], 0
	for i := range charges {
		c := &charges[i]
		it := item{from: len(g.buf), plan: s.plans.For(c)}
		if it.plan.Err != nil {
			return it.plan.Err
		}
		if c.Cost < 0 {
			return sluice.ErrInvalidRequest
		}
		it.cost = it.plan.Cost(c.Cost)
		g.buf = counter.AppendAnchor(g.buf, &c.Key)
		g.buf = counter.AppendRest(g.buf, c)
		it.to = len(g.buf)
		at := maphash.Bytes(s.seed, g.buf[it.from:it.to]) % shardCount
		it.shard = &s.shards[at]
		g.shards |= 1 << at
		for j := range g.items {
			if bytes.Equal(g.key(&g.items[j]), g.key(&it)) {
				return sluice.ErrSameCounter
			}
		}
		g.items = append(g.items, it)
	}
	return nil
}

func (g *group) key(it *item) []byte { return g.buf[it.from:it.to] }

// take charges all or nothing.
func (g *group) take(us int64) {
	passed := g.check(us)
	for i := range g.items {
		it, c := &g.items[i], &g.charges[i]
		taken := passed && it.out.Reply >= 0
		reply := it.out.Reply
		if reply >= 0 && !taken {
			reply = it.plan.Uncharged(reply, it.cost)
		}
		c.State = sluice.State{Time: us}
		counter.Fill(&c.State, it.plan.Answer(reply, it.cost, us))
		if taken {
			g.write(it, c, us)
		}
	}
}

// peek answers without charging.
func (g *group) peek(us int64) {
	g.check(us)
	for i := range g.items {
		it, c := &g.items[i], &g.charges[i]
		reply := it.out.Reply
		if reply >= 0 {
			reply = it.plan.Uncharged(reply, it.cost)
		}
		c.State = sluice.State{Time: us}
		counter.Fill(&c.State, it.plan.Answer(reply, it.cost, us))
	}
}

// check computes every outcome and tells whether the group passes.
func (g *group) check(us int64) bool {
	passed := true
	for i := range g.items {
		it := &g.items[i]
		it.cell = g.find(it, &g.charges[i], us)
		switch {
		case it.plan.Kind == algo.SlidingLog && it.cell != nil:
			it.out = it.plan.LogTake(it.cell.log, us, it.cost)
		case it.plan.Kind == algo.SlidingLog:
			it.out = it.plan.LogTake(nil, us, it.cost)
		case it.cell != nil:
			it.out = it.plan.Take(it.cell.value, true, us, it.cost)
		default:
			it.out = it.plan.Take(0, false, us, it.cost)
		}
		if it.out.Reply < 0 && !g.charges[i].Shadow {
			passed = false
		}
	}
	return passed
}

// find returns the charge's counter, nil when it has none yet. In a full shard a new key is led to its rule's
// overflow counter.
func (g *group) find(it *item, c *sluice.Charge, us int64) *cell {
	if cell := it.shard.live(g.key(it), us); cell != nil {
		return cell
	}
	it.shard.sweep(us)
	if len(it.shard.counters) < g.store.maxPerShard {
		return nil
	}
	bare := *c
	bare.Key.Parts = nil
	it.from = len(g.buf)
	g.buf = counter.AppendRest(append(g.buf, 0), &bare)
	it.to = len(g.buf)
	return it.shard.live(g.key(it), us)
}

func (g *group) write(it *item, c *sluice.Charge, us int64) {
	if it.cell == nil {
		it.cell = new(cell)
		it.shard.counters[string(g.key(it))] = it.cell
	}
	id := uint64(0)
	if it.plan.Kind == algo.SlidingLog {
		id = g.store.lastID.Add(1)
		it.cell.log = it.plan.LogAdd(it.cell.log, us, it.cost, id)
	}
	// Within a window only the value changes, as in Redis, where adding to a number keeps its life.
	if it.cell.expires == 0 || !it.plan.Continues(it.cell.value, it.out.Next) {
		it.cell.expires = us + it.plan.TTL*1000
	}
	it.cell.value = it.out.Next
	if c.Receipted {
		c.State.Receipt = sluice.Receipt{Time: us, ID: id}
	}
}

func (g *group) give(us int64) {
	it, c := &g.items[0], &g.charges[0]
	receipt := c.State.Receipt
	cell := it.shard.live(g.key(it), us)
	if cell == nil || receipt == (sluice.Receipt{}) {
		return
	}
	if it.plan.Kind == algo.SlidingLog {
		cell.log, _ = algo.LogGive(cell.log, receipt.ID)
		return
	}
	cell.value, _ = it.plan.Give(cell.value, us, receipt.Time, it.cost)
}

func (g *group) reset(int64) {
	it := &g.items[0]
	delete(it.shard.counters, string(g.key(it)))
}

// live returns the counter under a key unless it has expired.
func (s *shard) live(key []byte, us int64) *cell {
	c := s.counters[string(key)]
	if c == nil || c.expires <= us {
		return nil
	}
	return c
}

// sweepSteps is how many counters each look for an absent one examines for expiry. At two or more the number of dead
// ones stays below that of live ones; larger only makes such looks slower.
const sweepSteps = 4

// sweep drops some expired counters.
func (s *shard) sweep(us int64) {
	steps := sweepSteps
	for key, cell := range s.counters { // Go starts each iteration at a random place
		if cell.expires <= us {
			delete(s.counters, key)
		}
		if steps--; steps == 0 {
			return
		}
	}
}
