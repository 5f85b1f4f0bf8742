package redisstore_test

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/algo"
	"github.com/sluicehq/sluice/internal/counter"
	"github.com/sluicehq/sluice/redisstore"
)

// twin is what Redis must hold and reply, computed in Go. It keeps expiry as Redis does: in milliseconds, set by SET PX
// and PEXPIRE, kept by everything else, and seen only when a key is asked for.
type twin struct {
	plans counter.Plans[struct{}]
	cells map[string]*twinCell // by Redis key
	us    int64
}

type twinCell struct {
	value   int64
	log     []algo.Entry // nil: not a log
	expires int64        // ms
}

func newTwin() *twin { return &twin{cells: map[string]*twinCell{}} }

// live returns the counter under a key, and forgets one that has expired, as Redis does when it is asked for it.
func (w *twin) live(key string) *twinCell {
	c := w.cells[key]
	if c != nil && w.us/1000 > c.expires {
		delete(w.cells, key)
		return nil
	}
	return c
}

// inOrder returns a group's charges in the order in which they are sent: those that can refuse first.
func inOrder(group []sluice.Charge) []*sluice.Charge {
	var order []*sluice.Charge
	for _, shadow := range []bool{false, true} {
		for i := range group {
			if group[i].Shadow == shadow {
				order = append(order, &group[i])
			}
		}
	}
	return order
}

// take returns the replies the call must have brought, and does what it must have done.
func (w *twin) take(groups [][]sluice.Charge, call *redisstore.Call) []int64 {
	var replies []int64
	keys, ids := call.Keys, logIDs(call)
	for _, group := range groups {
		order := inOrder(group)
		outs := make([]algo.Outcome, len(order))
		passed := true
		for i, c := range order {
			outs[i] = w.check(c, keys[i])
			passed = passed && (c.Shadow || outs[i].Reply >= 0)
		}
		for i, c := range order {
			plan := w.plans.For(c)
			switch reply := outs[i].Reply; {
			case reply < 0:
				replies = append(replies, reply)
			case !passed:
				replies = append(replies, plan.Uncharged(reply, plan.Cost(c.Cost)))
			default:
				replies = append(replies, reply)
				w.write(c, keys[i], ids[i], outs[i])
			}
		}
		keys, ids = keys[len(order):], ids[len(order):]
	}
	return replies
}

// check is what both take and peek do first. Looking at a log trims it.
func (w *twin) check(c *sluice.Charge, key string) algo.Outcome {
	plan := w.plans.For(c)
	cost := plan.Cost(c.Cost)
	cell := w.live(key)
	if plan.Kind != algo.SlidingLog {
		if cell == nil {
			return plan.Take(0, false, w.us, cost)
		}
		return plan.Take(cell.value, true, w.us, cost)
	}
	if cell == nil {
		return plan.LogTake(nil, w.us, cost)
	}
	w.setLog(key, cell, plan.LogTrim(cell.log, w.us))
	return plan.LogTake(cell.log, w.us, cost)
}

// setLog replaces a log; an empty one is no key at all in Redis.
func (w *twin) setLog(key string, cell *twinCell, log []algo.Entry) {
	cell.log = log
	if len(log) == 0 {
		delete(w.cells, key)
	}
}

func (w *twin) write(c *sluice.Charge, key string, id uint64, out algo.Outcome) {
	plan := w.plans.For(c)
	cell := w.live(key)
	expires := w.us/1000 + plan.TTL
	if plan.Kind == algo.SlidingLog {
		if cell == nil {
			cell = &twinCell{}
			w.cells[key] = cell
		}
		cell.expires = expires
		w.setLog(key, cell, plan.LogAdd(cell.log, w.us, plan.Cost(c.Cost), id))
		return
	}
	isWindow := plan.Kind == algo.FixedWindow || plan.Kind == algo.SlidingWindow
	if isWindow && cell != nil && cell.value>>50 == out.Next>>50 {
		expires = cell.expires // added to the same window: the value's life was set when the window began
	}
	w.cells[key] = &twinCell{value: out.Next, expires: expires}
}

func (w *twin) peek(groups [][]sluice.Charge, call *redisstore.Call) []int64 {
	var replies []int64
	for _, group := range groups {
		for _, c := range inOrder(group) {
			plan := w.plans.For(c)
			reply := w.check(c, call.Keys[len(replies)]).Reply
			if reply >= 0 {
				reply = plan.Uncharged(reply, plan.Cost(c.Cost))
			}
			replies = append(replies, reply)
		}
	}
	return replies
}

func (w *twin) give(charges []sluice.Charge, call *redisstore.Call) []int64 {
	var replies []int64
	for i := range charges {
		c := &charges[i]
		if c.State.Receipt == (sluice.Receipt{}) {
			continue
		}
		plan := w.plans.For(c)
		key := call.Keys[len(replies)]
		var back int64
		if cell := w.live(key); cell != nil {
			if plan.Kind == algo.SlidingLog {
				var log []algo.Entry
				log, back = algo.LogGive(slices.Clone(cell.log), c.State.Receipt.ID)
				w.setLog(key, cell, log)
			} else {
				cell.value, back = plan.Give(cell.value, w.us, c.State.Receipt.Time, plan.Cost(c.Cost))
			}
		}
		replies = append(replies, back)
	}
	return replies
}

func (w *twin) reset(call *redisstore.Call) []int64 {
	var n int64
	for _, key := range call.Keys {
		if w.live(key) != nil {
			n++
			delete(w.cells, key)
		}
	}
	return []int64{n}
}

// stored is what a key must hold: a number, or the members and scores of a log in the order of time.
func (w *twin) stored(key string) string {
	cell := w.live(key)
	switch {
	case cell == nil:
		return "nothing"
	case cell.log == nil:
		return fmt.Sprintf("%d for %d ms", cell.value, cell.expires-w.us/1000)
	}
	var members []string
	unit := map[uint64]int{}
	for _, e := range cell.log {
		unit[e.ID]++
		members = append(members, fmt.Sprintf("%d %s-%d", e.Time, strconv.FormatUint(e.ID, 36), unit[e.ID]))
	}
	slices.Sort(members)
	return fmt.Sprintf("%v for %d ms", members, cell.expires-w.us/1000)
}

// logIDs reads the ids a take call carries for log entries: one per key, 0 for other algorithms.
func logIDs(call *redisstore.Call) []uint64 {
	ids := make([]uint64, len(call.Keys))
	if call.Script.Name == "one_sliding_log" {
		ids[0], _ = strconv.ParseUint(call.Args[3], 36, 64)
	}
	if call.Script.Name != "take" {
		return ids
	}
	next := 0
	for spec := call.Args[0]; spec != ""; {
		limits := int(spec[0] - '0')
		for _, set := range []byte(spec[2 : 2+limits]) {
			if args := call.Args[1+5*int(set-'0'):]; args[0] == "l" {
				ids[next], _ = strconv.ParseUint(args[4], 36, 64)
			}
			next++
		}
		spec = spec[2+limits:]
	}
	return ids
}
