// Package oracle judges a store after the fact. Processes write down what they asked of it and what it told them; Check
// reads that log, works out what each answer should have been, and says in plain words where the store was wrong.
//
// It shares nothing with what it judges: not the arithmetic (internal/algo), not the scripts, not the number formats.
// Two questions are asked, in two ways that do not lean on each other:
//
//   - Was too much admitted? Only what was admitted is looked at, against the definition of each limit: sums in
//     windows, sums in intervals, and for token buckets fractions without rounding. The order of charges within one
//     microsecond does not matter, nor what refused groups took for a while. (promises A1 to A4 of docs/promises.md)
//   - Was every answer the right one? The log is put into the order in which the store acted and replayed against a
//     model of each counter: verdicts both ways, remaining units, what was taken and given back, and the values the
//     store is left with. (A3, A6, A11, C5)
//
// The order is that of the store's own clock. Where several charges of a counter share a microsecond, as they do when
// callers share a script call, each tells what it found and left behind, and the one order that fits is looked for.
// When there is none, some answer was wrong whatever the order, and that is reported.
//
// A counter on which a reply was lost is not replayed, as nobody knows what it holds; over-admission is still judged.
// Limits must not change during a log.
package oracle

import (
	"cmp"
	"slices"

	"github.com/sluicehq/sluice"
)

// Check judges a log, and what was found in the store after the last of it. Without leftovers those are not judged.
// It takes notes in the log, so a log is judged once.
func Check(log *Log, leftovers []Leftover) *Report {
	c := &checker{log: log, report: &Report{}, clouded: make([]bool, len(log.Counters))}
	c.count()
	c.judgeGroups()
	c.matchGivebacks()

	found := map[string]*Leftover{}
	for i := range leftovers {
		found[leftovers[i].Key] = &leftovers[i]
	}
	for i, events := range c.eventsByCounter() {
		counter := &log.Counters[i]
		c.judgeAdmitted(counter, events)
		c.judgeRealTime(counter, events)
		if c.clouded[i] {
			c.report.NotReplayed++
			continue
		}
		r := newReplay(c.report, counter)
		r.run(events)
		if leftovers != nil {
			r.judgeLeftover(found[counter.Key])
		}
	}
	return c.report
}

type checker struct {
	log     *Log
	report  *Report
	clouded []bool // by counter: a reply was lost, nobody knows what it holds
}

// count fills the figures that are no judgement.
func (c *checker) count() {
	r := c.report
	r.Charges, r.Givebacks = len(c.log.Charges), len(c.log.Givebacks)
	for i := range c.log.Charges {
		charge := &c.log.Charges[i]
		share := &r.Algorithms[c.log.Counters[charge.Counter].Limit.Algorithm]
		share.Charges++
		if !charge.Passed {
			share.Refused++
		}
		if charge.Mode != sluice.Exact && !charge.Lost {
			r.add(NotExact, &c.log.Counters[charge.Counter], charge.Time, charge.Group, "was decided in mode %s, not by the store", charge.Mode)
		}
	}
}

// event is something that happened to one counter at one instant: a charge, or a give-back.
type event struct {
	time   int64
	charge *Charge
	give   *Giveback
}

// eventsByCounter returns what happened to each counter, by the store's clock. What has no answer is left out.
func (c *checker) eventsByCounter() [][]event {
	events := make([][]event, len(c.log.Counters))
	for i := range c.log.Charges {
		if charge := &c.log.Charges[i]; !charge.Lost {
			events[charge.Counter] = append(events[charge.Counter], event{time: charge.Time, charge: charge})
		}
	}
	for i := range c.log.Givebacks {
		if g := &c.log.Givebacks[i]; !g.Lost {
			events[g.Counter] = append(events[g.Counter], event{time: g.Time, give: g})
		}
	}
	for _, list := range events {
		slices.SortStableFunc(list, func(a, b event) int { return cmp.Compare(a.time, b.time) })
	}
	return events
}
