package main

import (
	"slices"
	"strconv"
	"time"

	"github.com/sluicehq/sluice/internal/algo"
)

// The states and numbers that cases are made of. Each list holds the edges of what the scripts compare.

const (
	ring     = int64(1) << 53
	halfRing = int64(1) << 52
	day      = 86_400_000_000 // µs

	// fineEdge is a multiple of 2^40 µs, where the fine ring begins anew, in November 2026; longEdge one of 2^50.
	fineEdge = int64(1633) << 40
	longEdge = int64(2) << 50
)

// instants are the times at which cases happen: ordinary ones, the very edges of windows and rings, and shortly before a
// ring's. Few enough that many cases share one, and the clock need not be moved for each.
func (m *caseMaker) drawInstants() (list []int64) {
	for range 100 {
		list = append(list, m.drawInstant())
	}
	return list
}

func (m *caseMaker) drawInstant() int64 {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	return pick(m,
		at, at+m.Int64N(366*day), at+m.Int64N(400)*1000, at+999, at+100_000-1, at+1_000_000-1, at+60_000_000-1, at+day-1, at+m.Int64N(400)*day, at+m.Int64N(100)*90_000_000_000-7*day/7,
		fineEdge, fineEdge-1, fineEdge-1000, fineEdge-day, longEdge, longEdge-1, longEdge-1000, longEdge-day, longEdge-300*day)
}

// bucket draws a token bucket, a debt and a cost.
func (m *caseMaker) bucket(c *testCase, ch *charge, kind algo.Kind) {
	const second = 1_000_000
	ch.plan = pick(m, algo.NewTokenBucket(10, second, 20, 0), algo.NewTokenBucket(7, second, 3, 0), algo.NewTokenBucket(5_000_000, second, 10_000, second),
		algo.NewTokenBucket(1, 2*day, 1, 0), algo.NewTokenBucket(999_983, second, 999_983, 0), algo.NewTokenBucket(1, day, 3, 0))
	own, foreign := int64(8192), int64(8)
	if kind == algo.LongBucket {
		ch.plan = pick(m, algo.NewTokenBucket(100, day, 1000, 0), algo.NewTokenBucket(7, day, 7000, 0), algo.NewTokenBucket(1, 366*day, 8, 60*second))
		own, foreign = foreign, own
	}
	y := ch.plan.Limit
	ch.cost = pick(m, 0, 1, 1, 7, 8192, 1000*own, ch.plan.Cost(1), ch.plan.Cost(2), y-1, y, y+1, ch.plan.Cost(1<<40))
	now := func(ticks int64) int64 { return int64(uint64(c.us) * uint64(ticks) & uint64(ring-1)) }
	at, isForeign := now(own), m.IntN(3) == 0
	debt := pick(m, -halfRing, -halfRing-1, -halfRing+1, -halfRing/2, -y, -1, 0, 1, 1000*own, 1000*own-ch.cost, y-ch.cost-1, y-ch.cost, y-ch.cost+1,
		y, y+1, m.Int64N(y), 1<<51, halfRing-1, halfRing, halfRing+1)
	if isForeign {
		at = now(foreign)
		const capLong = (ring - 1<<51) / 1024 // what fine ticks can tell of a long debt
		debt = pick(m, debt, debt, 1, 1023, 1024, 1025, y/1024, (y-ch.cost)*1024, (y-ch.cost)*1024+1, (y-ch.cost)/1024, (y-ch.cost)/1024+1, capLong-1, capLong, capLong+1)
		debt = min(max(debt, -halfRing-1), halfRing+1)
	}
	if m.IntN(6) == 0 {
		return // nothing stored
	}
	if m.IntN(5) == 0 {
		// The old value at the ring's edge, stored as 0 or -1, where the sign that tells the unit changes; or the new one,
		// after a take or a give.
		debt = ring - at + pick(m, 0, -ch.cost-1, -ch.cost, -ch.cost+1, ch.cost-1, ch.cost, ch.cost+1)
	}
	value := int64(uint64(at+debt) & uint64(ring-1))
	if isForeign != (kind == algo.LongBucket) {
		value = -1 - value
	}
	m.store(c, ch.key, value)
}

// window draws a window, the counts in it, how old they are, and a cost.
func (m *caseMaker) window(c *testCase, ch *charge, kind algo.Kind) {
	length := pick(m, int64(100_000), 1_000_000, 7_919_000, 60_000_000, day, day+1_000_000, 90_000_000_000, 366*day)
	limit := pick(m, int64(1), 2, 10, 1000, 1<<25-1)
	most := int64(1<<25 - 1)
	if kind == algo.FixedWindow {
		limit, most = pick(m, limit, 1<<25-2, 1<<25, 1<<25+1, 1<<50-1), 1<<50-1
		ch.plan = algo.NewFixedWindow(limit, length)
	} else {
		ch.plan = algo.NewSlidingWindow(limit, length)
	}
	ch.cost = ch.plan.Cost(max(pick(m, int64(0), 1, 2, limit/2, limit-1, limit, limit+1), 0))
	if m.IntN(6) == 0 {
		return // nothing stored
	}
	tick := int64(1000)
	if length > day {
		tick = 1_000_000
	}
	number := c.us / tick / (length / tick)
	// Two in three are of the current or the previous window, where the counts matter most.
	age := pick(m, 0, 0, 0, 0, 1, 1, 1, m.Int64N(8))
	cur := min(max(pick(m, 0, 1, limit-ch.cost-1, limit-ch.cost, limit-ch.cost, limit-ch.cost+1, limit/2, limit-1, limit, limit+1, most, m.Int64N(limit+1)), 0), most)
	closest := m.IntN(8) == 0 // one that is refused by the smallest fraction: see prev
	if closest {
		age, cur = 0, max(limit-ch.cost, 0)
	}
	value := (number - age) & 7 << 50
	if kind == algo.FixedWindow {
		value += cur
	} else {
		prev := min(max(pick(m, 0, 0, 1, 1, 1, limit-cur, limit-cur+1, 2*(limit-cur-ch.cost), limit/2, limit, limit+1, most, m.Int64N(limit+1)), 0), most)
		if closest {
			prev = 1
		}
		value += prev<<25 + cur
	}
	m.store(c, ch.key, value)
}

// log draws a sliding log, its entries and a cost.
func (m *caseMaker) log(c *testCase, ch *charge) {
	length := pick(m, int64(100_000), 1_000_000, 60_000_000, 366*day)
	ch.plan = algo.NewSlidingLog(pick(m, int64(1), 2, 3, 5), length)
	ch.cost = ch.plan.Cost(pick(m, int64(0), 1, 2, ch.plan.Limit, ch.plan.Limit+1))
	var entries []algo.Entry
	add := []string{"ZADD", ch.key}
	for id := range uint64(m.IntN(5)) {
		at := c.us - length + pick(m, -1000, -1, 0, 1, 999, 1000, length/2, length/2+1, length-1, length, length+1000)
		for unit := range 1 + m.IntN(2) {
			entries = append(entries, algo.Entry{Time: at, ID: id + 1})
			add = append(add, itoa(at), strconv.FormatUint(id+1, 36)+"-"+strconv.Itoa(unit+1))
		}
	}
	if len(entries) == 0 {
		return
	}
	slices.SortStableFunc(entries, func(a, b algo.Entry) int { return int(a.Time - b.Time) })
	life := pick(m, int64(1), 123_456_789)
	m.w.cells[ch.key] = &cell{log: entries, expires: c.us/1000 + life}
	c.setup = append(c.setup, add, []string{"PEXPIRE", ch.key, itoa(life)})
}

// give draws charges to give back, of takes long and not so long ago.
func (m *caseMaker) give() {
	c := m.begin()
	c.script = "give"
	var group []charge
	var us0 []int64
	for n := range 1 + m.IntN(3) {
		ch := m.charge(&c, pick(m, allKinds...), n+1)
		if cell := m.w.cells[ch.key]; cell != nil && cell.log != nil && m.IntN(3) > 0 {
			m.nameEntries(&ch, cell.log)
		}
		at := m.takenAt(&c, &ch)
		group, us0 = append(group, ch), append(us0, at)
		c.args = append(c.args, string(rune(ch.plan.Kind)), itoa(ch.cost), itoa(ch.plan.Window), itoa(at), strconv.FormatUint(ch.id, 36))
	}
	c.want = m.w.give(group, us0)
	m.end(c, group)
}

// nameEntries makes a charge that of entries which are in the log.
func (m *caseMaker) nameEntries(ch *charge, log []algo.Entry) {
	ch.id, ch.cost = log[m.IntN(len(log))].ID, 0
	for _, e := range log {
		if e.ID == ch.id {
			ch.cost++
		}
	}
}

// takenAt draws when a charge was taken, by what its algorithm compares.
func (m *caseMaker) takenAt(c *testCase, ch *charge) int64 {
	switch ch.plan.Kind {
	case algo.SlidingWindow, algo.FixedWindow:
		length := ch.plan.Window * 1000
		start := c.us - c.us%length
		return pick(m, c.us, c.us, c.us+1, start, start, start-1, start-1, start-length, start-length-1, start-2*length, start-7*length, start-8*length, start-9*length)
	case algo.SlidingLog:
		return c.us
	default:
		ticks := int64(8192)
		if ch.plan.Kind == algo.LongBucket {
			ticks = 8
		}
		return c.us - pick(m, -1, 0, 0, 0, 1, ch.cost/ticks/2, ch.cost/ticks, ch.cost/ticks+1, day)
	}
}
