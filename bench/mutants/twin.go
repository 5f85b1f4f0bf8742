package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/internal/algo"
)

// twin computes what a script must reply and leave behind, by the Go arithmetic. It keeps expiry as Redis does: in
// milliseconds, set by SET PX and PEXPIRE, kept by everything else.
type twin struct {
	us    int64
	cells map[string]*cell
}

// cell is what a key holds: a number, or the entries of a log.
type cell struct {
	value   int64
	log     []algo.Entry // sorted by time; nil: a number
	expires int64        // ms
}

// charge is one key's part in a call.
type charge struct {
	plan   algo.Plan
	cost   int64 // in the plan's own unit
	key    string
	shadow bool
	id     uint64 // of a log's entries
}

// lastArg is the fifth argument of a key in take.
func (c *charge) lastArg() string {
	if c.plan.Kind == algo.SlidingLog {
		return strconv.FormatUint(c.id, 36)
	}
	return itoa(c.plan.TTL)
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func (w *twin) check(c *charge) algo.Outcome {
	cell := w.cells[c.key]
	switch {
	case c.plan.Kind == algo.SlidingLog && cell == nil:
		return c.plan.LogTake(nil, w.us, c.cost)
	case c.plan.Kind == algo.SlidingLog: // looking at a log trims it
		w.setLog(c.key, c.plan.LogTrim(cell.log, w.us), cell.expires)
		return c.plan.LogTake(cell.log, w.us, c.cost)
	case cell == nil:
		return c.plan.Take(0, false, w.us, c.cost)
	}
	return c.plan.Take(cell.value, true, w.us, c.cost)
}

// setLog replaces a log; an empty one is no key at all in Redis.
func (w *twin) setLog(key string, log []algo.Entry, expires int64) {
	if len(log) == 0 {
		delete(w.cells, key)
		return
	}
	w.cells[key] = &cell{log: log, expires: expires}
}

func (w *twin) write(c *charge, out algo.Outcome) {
	old := w.cells[c.key]
	expires := w.us/1000 + c.plan.TTL
	if c.plan.Kind == algo.SlidingLog {
		var log []algo.Entry
		if old != nil {
			log = slices.Clone(old.log)
		}
		w.setLog(c.key, c.plan.LogAdd(log, w.us, c.cost, c.id), expires)
		return
	}
	isWindow := c.plan.Kind == algo.FixedWindow || c.plan.Kind == algo.SlidingWindow
	if isWindow && old != nil && old.value>>50 == out.Next>>50 {
		expires = old.expires // added to the same window
	}
	w.cells[c.key] = &cell{value: out.Next, expires: expires}
}

// take charges groups and returns the replies.
func (w *twin) take(groups [][]charge) []int64 {
	var replies []int64
	for _, group := range groups {
		outs := make([]algo.Outcome, len(group))
		passed := true
		for i := range group {
			outs[i] = w.check(&group[i])
			passed = passed && (group[i].shadow || outs[i].Reply >= 0)
		}
		for i := range group {
			reply := outs[i].Reply
			switch {
			case reply >= 0 && passed:
				w.write(&group[i], outs[i])
			case reply >= 0:
				reply = group[i].plan.Uncharged(reply, group[i].cost)
			}
			replies = append(replies, reply)
		}
	}
	return replies
}

func (w *twin) peek(group []charge) []int64 {
	var replies []int64
	for i := range group {
		reply := w.check(&group[i]).Reply
		if reply >= 0 {
			reply = group[i].plan.Uncharged(reply, group[i].cost)
		}
		replies = append(replies, reply)
	}
	return replies
}

// give returns what came back of charges taken at us0 each.
func (w *twin) give(group []charge, us0 []int64) []int64 {
	replies := make([]int64, len(group))
	for i := range group {
		c := &group[i]
		cell := w.cells[c.key]
		switch {
		case cell == nil:
		case c.plan.Kind == algo.SlidingLog:
			var log []algo.Entry
			log, replies[i] = algo.LogGive(slices.Clone(cell.log), c.id)
			w.setLog(c.key, log, cell.expires)
		default:
			cell.value, replies[i] = c.plan.Give(cell.value, w.us, us0[i], c.cost)
		}
	}
	return replies
}

// holds tells what a key holds, in the words of look.
func (w *twin) holds(key string) string {
	c := w.cells[key]
	switch {
	case c == nil:
		return "nothing"
	case c.log == nil:
		return fmt.Sprintf("%d for %d ms", c.value, c.expires-w.us/1000)
	}
	return fmt.Sprintf("%s for %d ms", strings.Join(members(c.log), " "), c.expires-w.us/1000)
}

// members lists a log's entries as a sorted set has them: by time, then by name.
func members(log []algo.Entry) []string {
	unit := map[uint64]int{}
	list := make([]string, len(log))
	for i, e := range log {
		unit[e.ID]++
		list[i] = fmt.Sprintf("%s-%d@%d", strconv.FormatUint(e.ID, 36), unit[e.ID], e.Time)
	}
	slices.Sort(list)
	return list
}
