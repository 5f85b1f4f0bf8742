package oracle

import "github.com/sluicehq/sluice"

// judgeAdmitted checks A1 to A4: it looks at admitted charges only, and adds up all of an instant before it judges, so
// that neither give-backs nor the order within an instant can hide or feign anything.
func (c *checker) judgeAdmitted(counter *Counter, events []event) {
	admit := newInvariant(counter.Limit)
	excess := &c.report.Over[counter.Limit.Algorithm]
	for first := 0; first < len(events); {
		at, units, next := events[first].time, int64(0), first
		var group GroupID
		for ; next < len(events) && events[next].time == at; next++ {
			if charge := events[next].charge; charge != nil && charge.Allowed && charge.Passed {
				units += charge.Cost
				group = charge.Group
			}
		}
		first = next
		if units == 0 {
			continue
		}
		over, words := admit(at, units)
		if over == 0 {
			continue
		}
		excess.Instants++
		excess.Units += min(over, units) // the rest was there before
		excess.Most = max(excess.Most, over)
		c.report.add(OverAdmitted, counter, at, group, "%d units were admitted at this instant, %d too many %s", units, over, words)
	}
}

// newInvariant returns a function that is told what was admitted, instant by instant, and answers how many units that
// is too many and in which sense.
func newInvariant(l sluice.Limit) func(t, units int64) (over int64, words string) {
	if l.Algorithm == sluice.TokenBucket {
		bucket := newExactBucket(l)
		return func(t, units int64) (int64, string) {
			return bucket.admit(t, units), "for burst + rate·time in an interval that ends here (A4)"
		}
	}
	words := map[sluice.Algorithm]string{
		sluice.FixedWindow:   "in this window (A1)",
		sluice.SlidingLog:    "in the interval that ends here (A2)",
		sluice.SlidingWindow: "for this window's count and the previous one's weighted (A3)",
	}[l.Algorithm]
	m := newModel(l)
	var twice *logModel
	if l.Algorithm == sluice.SlidingWindow {
		// The algorithm's worst case, which users are told: below twice the limit in any interval.
		twice = &logModel{limit: 2*l.Limit - 1, window: l.Window.Microseconds()}
	}
	return func(t, units int64) (int64, string) {
		m.charge(t, units)
		if over := -m.room(t); over > 0 {
			return (over + m.grain() - 1) / m.grain(), words
		}
		if twice != nil {
			twice.charge(t, units)
			if over := -twice.room(t); over > 0 {
				return over, "to stay below twice the limit in the interval that ends here (A3)"
			}
		}
		return 0, ""
	}
}
