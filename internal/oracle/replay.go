package oracle

// replay runs one counter's events through its model.
type replay struct {
	report  *Report
	counter *Counter
	tie     tie

	// model sees everything the store saw: also what refused groups took and gave back.
	model model
	// ideal sees only what stayed charged, as if refused groups had never touched the counter.
	ideal model
	// slack is how much more debt than ideal a token bucket may have: for each give-back since it was last full, the
	// time it took, or the whole charge if that is less.
	slack int64
	last  int64 // time of the last event
}

func newReplay(report *Report, counter *Counter) *replay {
	r := &replay{report: report, counter: counter, model: newModel(counter.Limit), ideal: newModel(counter.Limit)}
	r.tie.grain, r.tie.capacity = r.model.grain(), counter.Limit.Capacity()
	r.tie.perBack = r.tie.grain / measure(r.model)
	return r
}

func (r *replay) run(events []event) {
	for first := 0; first < len(events); {
		at, next := events[first].time, first+1
		for next < len(events) && events[next].time == at {
			next++
		}
		if n := next - first; n > 1 {
			r.report.Ties++
			r.report.WidestTie = max(r.report.WidestTie, n)
			r.tie.events = events[first:next]
			if !r.tie.sort(r.model.room(at)) {
				r.noOrder(at)
			}
		}
		for i := first; i < next; i++ {
			r.step(&events[i])
		}
		first, r.last = next, at
	}
	r.judgeEnd()
}

func (r *replay) noOrder(at int64) {
	var group GroupID
	for i := range r.tie.events {
		if c := r.tie.events[i].charge; c != nil {
			group = c.Group
		}
	}
	r.report.add(NoOrder, r.counter, at, group,
		"%d charges and give-backs of one microsecond, starting with %d units left: in no order is what each was told true",
		len(r.tie.events), unitsIn(r.model.room(at), r.tie.grain, r.tie.capacity))
}

func (r *replay) step(e *event) {
	if bucket, ok := r.model.(*bucketModel); ok && bucket.owed(e.time) == 0 {
		r.slack = 0
	}
	if e.give != nil {
		r.giveback(e.give)
		return
	}
	c := e.charge
	room := r.model.room(c.Time)
	r.judgeVerdict(c, room)
	r.judgeRemaining(c, room)
	switch c.effect {
	case charged:
		r.model.charge(c.Time, c.Cost)
		r.ideal.charge(c.Time, c.Cost)
	case borrowed:
		r.model.charge(c.Time, c.Cost)
	}
}

func (r *replay) judgeVerdict(c *Charge, room int64) {
	need := c.Cost * r.tie.grain
	has := unitsIn(room, r.tie.grain, r.tie.capacity)
	switch {
	case c.Passed && room < need:
		r.report.add(PassedWithoutRoom, r.counter, c.Time, c.Group, "a charge of %d passed though only %d units were left", c.Cost, has)
	case !c.Passed && room >= need:
		r.report.add(FalselyRefused, r.counter, c.Time, c.Group, "a charge of %d was refused though %d units were left", c.Cost, has)
	case !c.Passed && r.ideal.room(c.Time) >= need:
		r.report.Explained[r.counter.Limit.Algorithm]++
		if c.OneShard {
			r.report.ExplainedOneShard++
		}
	}
}

// judgeRemaining compares what the caller was told. A refused group whose charge lowered the count all the same is
// given away by its own answer.
func (r *replay) judgeRemaining(c *Charge, room int64) {
	before := unitsIn(room, r.tie.grain, r.tie.capacity)
	want := before
	if c.effect == charged && c.Allowed {
		want = unitsIn(room-c.Cost*r.tie.grain, r.tie.grain, r.tie.capacity)
	}
	if c.Remaining == want {
		return
	}
	if c.effect == untouched && c.Passed && c.Cost > 0 && c.Remaining == before-c.Cost {
		r.report.add(ChargedThoughRefused, r.counter, c.Time, c.Group, "%d of %d units were charged though another limit refused the group", c.Cost, before)
		c.effect = charged
		return
	}
	r.report.add(WrongRemaining, r.counter, c.Time, c.Group, "a charge of %d was told that %d units remain, want %d", c.Cost, c.Remaining, want)
}

func (r *replay) giveback(g *Giveback) {
	unit := measure(r.model)
	want := r.model.forgive(g.Time, g.Taken, g.Cost/unit)
	if want != g.Back {
		r.report.add(WrongGiveback, r.counter, g.Time, 0, "of %d charged at %d, %d came back, want %d", g.Cost, g.Taken, g.Back, want)
	}
	r.slack += g.Cost - want
}

// judgeEnd compares the model with the ideal one after the last event. What refused groups took must have come back:
// to a window and a log all of it, to a token bucket all but what could have been refilled while it was gone.
func (r *replay) judgeEnd() {
	at := r.last
	short := r.ideal.room(at) - r.model.room(at)
	bucket, ok := r.model.(*bucketModel)
	if !ok {
		if short != 0 {
			r.report.add(WrongLeftover, r.counter, at, 0, "refused groups left a difference of %d units behind", short/r.tie.grain)
		}
		return
	}
	if bucket.owed(at) == 0 {
		r.slack = 0
	}
	if short < 0 || short > r.slack {
		r.report.add(WrongLeftover, r.counter, at, 0,
			"refused groups left the bucket %d ticks short, which must be from 0 to %d, the refill of the give-backs' delays", short, r.slack)
	}
	loss := Loss{Units: float64(short) / float64(bucket.unit), Micros: float64(short) / float64(bucket.perMicro)}
	if loss.Units > r.report.Loss.Units {
		r.report.Loss = loss
	}
}

// judgeLeftover compares what the store holds with the model; nil found means that nobody looked.
func (r *replay) judgeLeftover(found *Leftover) {
	if found == nil {
		r.report.add(WrongLeftover, r.counter, r.last, 0, "nobody looked what the store holds")
		return
	}
	r.report.Leftovers++
	if found.Present {
		r.report.LeftoverValues++
	}
	if words := r.model.misfit(found); words != "" {
		r.report.add(WrongLeftover, r.counter, found.ReadAt, 0, "%s", words)
	}
	if words := found.lifeFault(r.counter.Limit); words != "" {
		r.report.add(WrongTTL, r.counter, found.ReadAt, 0, "%s", words)
	}
}
