package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/sluicehq/sluice/internal/algo"
)

// A script is a function of what is stored, its arguments and the time. So the cases are single calls on states made up
// for them, at the edges of everything; what leads to such a state need not be played.

// testCase is one call, and what it must reply and leave behind.
type testCase struct {
	us     int64
	script string
	setup  [][]string // commands before the call
	keys   []string
	args   []string
	want   []int64  // all integers of the reply
	after  []string // what each key holds then
	isLog  []bool   // by key
}

// caseMaker draws cases. Its seed is fixed, so that a mutant is killed or survives for good.
type caseMaker struct {
	*rand.Rand
	instants []int64
	count    int
	all      []testCase
	w        twin
}

// casesPerShape is how many cases each maker draws. With fewer some boundary is not hit; more only take longer.
const casesPerShape = 2000

func makeCases() []testCase {
	m := &caseMaker{Rand: rand.New(rand.NewPCG(2026, 11))}
	m.instants = m.drawInstants()
	for range casesPerShape {
		for _, kind := range []algo.Kind{algo.TokenBucket, algo.LongBucket, algo.SlidingWindow, algo.FixedWindow, algo.SlidingLog} {
			m.one(kind)
		}
		for range 2 { // they hold all algorithms
			m.take()
			m.peek()
			m.give()
		}
	}
	for range 20 {
		m.reset()
	}
	// Cases of one instant stand together: the clock is moved once for all of them.
	slices.SortStableFunc(m.all, func(a, b testCase) int { return slices.Index(m.instants, a.us) - slices.Index(m.instants, b.us) })
	return m.all
}

func pick[T any](m *caseMaker, list ...T) T { return list[m.IntN(len(list))] }

// begin starts a case at some instant.
func (m *caseMaker) begin() testCase {
	us := pick(m, m.instants...)
	m.w = twin{us: us, cells: map[string]*cell{}}
	m.count++
	return testCase{us: us}
}

// end notes what must be there after the call.
func (m *caseMaker) end(c testCase, group []charge) {
	for i := range group {
		c.keys = append(c.keys, group[i].key)
		c.isLog = append(c.isLog, group[i].plan.Kind == algo.SlidingLog)
	}
	for _, key := range c.keys {
		c.after = append(c.after, m.w.holds(key))
	}
	m.all = append(m.all, c)
}

// charge draws a charge of a kind on a key of its own, and what is stored there.
func (m *caseMaker) charge(c *testCase, kind algo.Kind, n int) charge {
	ch := charge{key: fmt.Sprintf("rl1:{%d}%d", m.count, n), id: m.Uint64()>>1 + 1}
	switch kind {
	case algo.SlidingWindow, algo.FixedWindow:
		m.window(c, &ch, kind)
	case algo.SlidingLog:
		m.log(c, &ch)
	default:
		m.bucket(c, &ch, kind)
	}
	return ch
}

// store puts a number under the charge's key, to live for longer or shorter than a script would let it.
func (m *caseMaker) store(c *testCase, key string, value int64) {
	life := pick(m, int64(1), 60_000, 123_456_789_000)
	m.w.cells[key] = &cell{value: value, expires: c.us/1000 + life}
	c.setup = append(c.setup, []string{"SET", key, itoa(value), "PX", itoa(life)})
}

func (m *caseMaker) one(kind algo.Kind) {
	c := m.begin()
	ch := m.charge(&c, kind, 1)
	c.script = map[algo.Kind]string{
		algo.TokenBucket: "one_token_bucket", algo.LongBucket: "one_long_bucket", algo.SlidingWindow: "one_sliding_window",
		algo.FixedWindow: "one_fixed_window", algo.SlidingLog: "one_sliding_log",
	}[kind]
	c.args = []string{itoa(ch.cost), itoa(ch.plan.Limit), itoa(ch.plan.Window), ch.lastArg()}
	c.want = m.w.take([][]charge{{ch}})
	m.end(c, []charge{ch})
}

var allKinds = []algo.Kind{algo.TokenBucket, algo.LongBucket, algo.SlidingWindow, algo.FixedWindow, algo.SlidingLog}

// groups draws charges in groups; a later group may charge a counter again.
func (m *caseMaker) groups(c *testCase, most int) (groups [][]charge) {
	n := 0
	for range 1 + m.IntN(most) {
		var group []charge
		shadows := 0
		for range 1 + m.IntN(3) {
			n++
			ch := m.charge(c, pick(m, allKinds...), n)
			if shadows > 0 || m.IntN(4) == 0 { // shadows stand last
				ch.shadow = true
				shadows++
			}
			group = append(group, ch)
		}
		if len(groups) > 0 && m.IntN(3) == 0 {
			again := groups[0][0]
			again.id = m.Uint64()>>1 + 1
			again.shadow = shadows == len(group)
			group = append([]charge{again}, group...)
		}
		groups = append(groups, group)
	}
	return groups
}

// addArgs appends the arguments of a charge, unless an earlier one has the same, and returns the character they are
// called by.
func (c *testCase) addArgs(ch *charge) string {
	set := []string{string(rune(ch.plan.Kind)), itoa(ch.cost), itoa(ch.plan.Limit), itoa(ch.plan.Window), ch.lastArg()}
	for at := 1; at < len(c.args); at += len(set) {
		if slices.Equal(c.args[at:at+len(set)], set) {
			return string(rune('0' + at/len(set)))
		}
	}
	c.args = append(c.args, set...)
	return string(rune('0' + len(c.args)/len(set) - 1))
}

func (m *caseMaker) take() {
	c := m.begin()
	c.script = "take"
	groups := m.groups(&c, 3)
	c.args = []string{""}
	var all []charge
	for _, g := range groups {
		sets, shadows := "", 0
		for i := range g {
			sets += c.addArgs(&g[i])
			if g[i].shadow {
				shadows++
			}
			all = append(all, g[i])
		}
		c.args[0] += strconv.Itoa(len(g)) + strconv.Itoa(shadows) + sets
	}
	c.want = append([]int64{c.us}, m.w.take(groups)...)
	m.end(c, all)
}

func (m *caseMaker) peek() {
	c := m.begin()
	c.script = "peek"
	groups := m.groups(&c, 1)
	c.args = []string{""}
	for i := range groups[0] {
		c.args[0] += c.addArgs(&groups[0][i])
	}
	c.want = append([]int64{c.us}, m.w.peek(groups[0])...)
	m.end(c, groups[0])
}

func (m *caseMaker) reset() {
	c := m.begin()
	c.script = "reset"
	var group []charge
	for n := range 1 + m.IntN(3) {
		group = append(group, m.charge(&c, pick(m, allKinds...), n+1))
	}
	c.want = []int64{int64(len(m.w.cells))}
	clear(m.w.cells)
	m.end(c, group)
}
