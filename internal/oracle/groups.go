package oracle

// effect is what the store must have done with a charge, as the answers to its group tell.
type effect uint8

const (
	untouched effect = iota
	charged
	// borrowed: charged, and given back because another shard refused the group.
	borrowed
)

// judgeGroups checks A6 as far as the answers themselves go, and works out the effect of each charge.
func (c *checker) judgeGroups() {
	charges := c.log.Charges
	for first := 0; first < len(charges); {
		next := first + 1
		for next < len(charges) && charges[next].Group == charges[first].Group {
			next++
		}
		c.judgeGroup(charges[first:next])
		first = next
	}
}

func (c *checker) judgeGroup(group []Charge) {
	r := c.report
	r.Decisions++
	if group[0].Allowed {
		r.Allowed++
	}
	if !group[0].OneShard {
		r.AcrossShards++
	}
	refuses, lost := false, false
	for i := range group {
		refuses = refuses || !group[i].Passed && !group[i].Shadow && !group[i].Lost
		lost = lost || group[i].Lost
	}
	counter := &c.log.Counters[group[0].Counter]
	if lost {
		r.add(Unknown, counter, group[0].Called, group[0].Group, "no answer came for a charge of the group: it may have been charged or not")
		for i := range group {
			c.clouded[group[i].Counter] = true
		}
	}
	switch allowed := group[0].Allowed; {
	case allowed && refuses:
		r.add(WrongGroupVerdict, counter, group[0].Time, group[0].Group, "the group was allowed though one of its limits refused")
	case !allowed && !refuses && !lost:
		r.add(WrongGroupVerdict, counter, group[0].Time, group[0].Group, "the group was refused though none of its limits refused")
	}
	for i := range group {
		group[i].effect = c.effectOf(group, &group[i], refuses)
	}
}

// effectOf tells what happened to one charge. Charges that share a shard are one step of the store: there either all
// of them were charged or none.
func (c *checker) effectOf(group []Charge, charge *Charge, refused bool) effect {
	switch {
	case charge.Lost || !charge.Passed:
		return untouched
	case charge.Allowed || !refused:
		return charged
	case charge.OneShard:
		return untouched
	}
	shard := c.log.Counters[charge.Counter].Shard
	for i := range group {
		other := &group[i]
		if other.Shadow {
			continue
		}
		counter := &c.log.Counters[other.Counter]
		if !other.Passed && counter.Shard == shard {
			return untouched // its own step refused
		}
		if other.Cost > counter.Limit.Capacity() {
			return untouched // can never pass: the store only asks, and charges nothing anywhere
		}
	}
	return borrowed
}

// matchGivebacks pairs each borrowed charge with its return. Charges of equal counter, time and cost are
// interchangeable, so any pairing will do.
func (c *checker) matchGivebacks() {
	type key struct {
		counter     int32
		taken, cost int64
	}
	waiting := map[key][]*Giveback{}
	for i := range c.log.Givebacks {
		g := &c.log.Givebacks[i]
		if g.Lost {
			c.clouded[g.Counter] = true
			c.report.add(Unknown, &c.log.Counters[g.Counter], g.Called, 0, "no answer came for a give-back: it may have been applied or not")
		}
		k := key{g.Counter, g.Taken, g.Cost}
		waiting[k] = append(waiting[k], g)
	}
	measures := make([]int64, len(c.log.Counters))
	for i := range measures {
		measures[i] = measure(newModel(c.log.Counters[i].Limit))
	}
	for i := range c.log.Charges {
		charge := &c.log.Charges[i]
		if charge.effect != borrowed {
			continue
		}
		k := key{charge.Counter, charge.Time, charge.Cost * measures[charge.Counter]}
		list := waiting[k]
		if len(list) == 0 {
			charge.effect = charged
			c.report.add(ChargedThoughRefused, &c.log.Counters[charge.Counter], charge.Time, charge.Group,
				"%d units were charged, the group was refused by another shard, and they were never given back", charge.Cost)
			continue
		}
		list[0].matched = true
		waiting[k] = list[1:]
	}
	for i := range c.log.Givebacks {
		if g := &c.log.Givebacks[i]; !g.matched {
			c.report.add(WrongGiveback, &c.log.Counters[g.Counter], g.Time, 0,
				"%d were given back for a charge at %d that was not made, or had been given back before", g.Back, g.Taken)
		}
	}
}

// measure is what a unit weighs in a give-back's Cost and Back.
func measure(m model) int64 {
	if b, ok := m.(*bucketModel); ok {
		return b.unit
	}
	return 1
}
