package oracle

import (
	"cmp"
	"slices"
)

// tie is what happened to one counter within one microsecond. No time passes between its events, so the room moves by
// whole charges and give-backs only, and every charge tells how many units it found.
type tie struct {
	events   []event
	grain    int64
	perBack  int64 // grains in what a give-back counts by
	capacity int64 // units
	steps    int   // left to search
}

// tieSteps bounds the search. Without give-backs it never branches on a consistent tie, as each charge lowers the room
// for good; so this is for ties of many give-backs, which scripts that take microseconds each hardly ever make.
const tieSteps = 10_000

// sort puts the events into an order that explains what each was told, starting with room. It returns false when
// there is none; the events then stand in the likeliest order.
func (s *tie) sort(room int64) bool {
	s.steps = tieSteps
	if s.solve(room, 0) {
		return true
	}
	slices.SortStableFunc(s.events, func(a, b event) int {
		switch {
		case a.charge == nil || b.charge == nil:
			return cmp.Compare(b2i(a.charge != nil), b2i(b.charge != nil)) // returns first: they can only make room
		case a.before() != b.before():
			return cmp.Compare(b.before(), a.before())
		default:
			return cmp.Compare(b2i(a.moves()), b2i(b.moves()))
		}
	})
	return false
}

// solve places the events from i on.
func (s *tie) solve(room int64, i int) bool {
	if i == len(s.events) {
		return true
	}
	if s.steps--; s.steps < 0 {
		return false
	}
	// An event that moves nothing and fits here may as well stand here: it changes nothing for the others.
	for j := i; j < len(s.events); j++ {
		if e := &s.events[j]; !e.moves() && s.explains(room, e) {
			s.events[i], s.events[j] = s.events[j], s.events[i]
			return s.solve(room, i+1)
		}
	}
	for j := i; j < len(s.events); j++ {
		e := s.events[j]
		if !e.moves() || !s.explains(room, &e) {
			continue
		}
		s.events[i], s.events[j] = s.events[j], s.events[i]
		if s.solve(room+s.delta(&e), i+1) {
			return true
		}
		s.events[i], s.events[j] = s.events[j], s.events[i]
	}
	return false
}

// explains tells whether the event was told the truth if it came when room was left.
func (s *tie) explains(room int64, e *event) bool {
	if e.charge == nil {
		return true
	}
	return e.before() == unitsIn(room, s.grain, s.capacity) && e.charge.Passed == (room >= e.charge.Cost*s.grain)
}

func (s *tie) delta(e *event) int64 {
	if e.charge == nil {
		return e.give.Back * s.perBack
	}
	return -e.charge.Cost * s.grain
}

// moves tells whether the event changes the room.
func (e *event) moves() bool {
	if e.charge == nil {
		return e.give.Back != 0
	}
	return e.charge.effect != untouched
}

// before is the number of units a charge said it found.
func (e *event) before() int64 {
	if e.charge.effect == charged && e.charge.Allowed {
		return e.charge.Remaining + e.charge.Cost
	}
	return e.charge.Remaining // a refused group is told what there was before it
}

// unitsIn is how a room in grains is told to callers: whole units, from none to all.
func unitsIn(room, grain, capacity int64) int64 { return min(max(room, 0)/grain, capacity) }

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// judgeRealTime checks that the store acted in an order callers can believe: who called after another had returned
// comes after it. Events of one instant are not compared.
func (c *checker) judgeRealTime(counter *Counter, events []event) {
	var latest, latestOfInstant int64 // calls: of earlier instants, and with this one
	for i := range events {
		if i > 0 && events[i].time != events[i-1].time {
			latest = latestOfInstant
		}
		called, returned, group := events[i].span()
		latestOfInstant = max(latestOfInstant, called)
		if returned < latest {
			c.report.add(OutOfOrder, counter, events[i].time, group,
				"the call had returned at %d, but the store put a call made later, at %d, before it", returned, latest)
		}
	}
}

func (e *event) span() (called, returned int64, group GroupID) {
	if e.charge != nil {
		return e.charge.Called, e.charge.Returned, e.charge.Group
	}
	return e.give.Called, e.give.Returned, 0
}
