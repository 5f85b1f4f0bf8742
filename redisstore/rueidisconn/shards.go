package rueidisconn

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/sluicehq/sluice/redisstore"
)

// shardMap tells which breaker stands for which slot. A shard is its slots, not its address: a promoted replica takes
// over the breaker of its master. A map is immutable; another layout is another map.
type shardMap struct {
	of       []uint16 // slot to index; nil: everything is one shard
	shards   []*shard
	layout   string          // to tell a changed layout
	lifetime context.Context //nolint:containedctx // of its probes, which outlive the calls that start them
	end      context.CancelFunc
}

type shard struct {
	breaker
	name     string
	probeKey string // lies in one of its slots
}

// newShardMap makes a map from slots by shard name; nil: one shard.
func (c *Conn) newShardMap(slots map[string][]slotRange) *shardMap {
	m := &shardMap{layout: layoutOf(slots)}
	m.lifetime, m.end = context.WithCancel(c.life)
	if len(slots) == 0 {
		m.shards = []*shard{{name: "redis", probeKey: redisstore.ProbeKey(nil)}}
	} else {
		m.of = make([]uint16, 16384)
	}
	for i, name := range slices.Sorted(maps.Keys(slots)) {
		for _, r := range slots[name] {
			for s := r.first; s <= r.last; s++ {
				m.of[s] = uint16(i)
			}
		}
		inShard := func(slot uint16) bool {
			return slices.ContainsFunc(slots[name], func(r slotRange) bool { return r.first <= int(slot) && int(slot) <= r.last })
		}
		m.shards = append(m.shards, &shard{name: name, probeKey: redisstore.ProbeKey(inShard)})
	}
	for _, s := range m.shards {
		s.opened = func(*breaker) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.life.Err() == nil {
				c.wait.Go(func() { c.heal(m, s) })
			}
		}
	}
	return m
}

func (m *shardMap) breakerOf(key string) *breaker { return &m.shards[m.shardOf(key)].breaker }

func (m *shardMap) shardOf(key string) int {
	if m.of == nil {
		return 0
	}
	return int(m.of[redisstore.Slot(key)])
}

// ShardOf implements redisstore.Sharder.
func (c *Conn) ShardOf(key string) int { return c.shards.Load().shardOf(key) }

func (c *Conn) notify(shard string, open bool) {
	if c.opts.OnBreaker != nil {
		c.opts.OnBreaker(shard, open)
	}
}

// heal probes until the shard answers, or another layout has replaced it with a shard that is closed.
func (c *Conn) heal(m *shardMap, s *shard) {
	c.notify(s.name, true)
	s.probeUntilClosed(m.lifetime, func(ctx context.Context) error { return c.probe(ctx, s) })
	if c.life.Err() == nil {
		c.notify(s.name, false)
	}
}

// probe writes nothing but asks as a write, so that a demoted or broken master does not pass.
func (c *Conn) probe(ctx context.Context, s *shard) error {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	client, err := c.connected(ctx)
	if err != nil {
		return err
	}
	c.refreshShards(ctx, client)
	return client.Do(ctx, client.B().Del().Key(s.probeKey).Build()).Error()
}

type slotRange struct{ first, last int }

// refreshShards replaces the map when slots have moved between shards. It keeps the old one when nobody answers.
func (c *Conn) refreshShards(ctx context.Context, client rueidis.Client) {
	if !c.opts.Cluster {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	rows, err := client.Do(ctx, client.B().ClusterSlots().Build()).ToArray()
	if err != nil {
		return
	}
	// The lowest slot names a shard: it stays the same when its master changes.
	masters := map[string][]slotRange{}
	for _, row := range rows {
		fields, err := row.ToArray()
		if err != nil || len(fields) < 3 {
			return
		}
		first, err1 := fields[0].AsInt64()
		last, err2 := fields[1].AsInt64()
		node, err3 := fields[2].ToArray()
		if err1 != nil || err2 != nil || err3 != nil || len(node) < 3 || first < 0 || last > 16383 {
			return
		}
		id, _ := node[2].ToString()
		masters[id] = append(masters[id], slotRange{int(first), int(last)})
	}
	slots := map[string][]slotRange{}
	for _, ranges := range masters {
		slices.SortFunc(ranges, func(a, b slotRange) int { return a.first - b.first })
		slots["slot "+strconv.Itoa(ranges[0].first)] = ranges
	}
	if old := c.shards.Load(); len(slots) > 0 && layoutOf(slots) != old.layout {
		if c.shards.CompareAndSwap(old, c.newShardMap(slots)) {
			old.end()
		}
	}
}

func layoutOf(slots map[string][]slotRange) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(slots)) {
		b.WriteString(name)
		for _, r := range slots[name] {
			b.WriteString(":" + strconv.Itoa(r.first) + "-" + strconv.Itoa(r.last))
		}
	}
	return b.String()
}
