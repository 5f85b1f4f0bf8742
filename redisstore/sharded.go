package redisstore

import (
	"context"
	"slices"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/counter"
)

// In a Cluster one script may only touch keys of one slot. A group within one slot is one call, as elsewhere. A group
// over several slots is one call per slot, all at once; when one refuses, what the others took is given back.

// takeSharded implements Take for several groups.
func (s *Store) takeSharded(ctx context.Context, groups [][]sluice.Charge) {
	takeSplits(ctx, s.conn, s.splits(groups, scriptTake))
}

func takeSplits(ctx context.Context, conn Conn, splits []*split) {
	runSplits(ctx, conn, splits)
	for _, sp := range splits {
		sp.fill(ctx)
	}
}

// peekSharded implements Peek.
func (s *Store) peekSharded(ctx context.Context, groups [][]sluice.Charge) {
	splits := s.splits(groups, scriptPeek)
	runSplits(ctx, s.conn, splits)
	for _, sp := range splits {
		sp.fillStates(false)
	}
}

func (t *ticket) oneSlot() bool {
	for i := 1; i < len(t.items); i++ {
		if Slot(t.items[i].key) != Slot(t.items[0].key) {
			return false
		}
	}
	return true
}

// split is a group divided by slots. It is not pooled: its memory may outlive an error.
type split struct {
	ticket *ticket
	parts  []*part
}

// part is what one slot is asked.
type part struct {
	slot    uint16
	items   []*item
	shadows int
	call    Call
	err     error
	us      int64
	replies []int64
}

func (s *Store) splits(groups [][]sluice.Charge, script *Script) []*split {
	splits := make([]*split, len(groups))
	for i := range groups {
		t := newTicket()
		t.load(s, groups[i:i+1])
		t.next()
		splits[i] = newSplit(t, script)
	}
	return splits
}

// newSplit divides a ticket's group by slots and makes the calls. The ticket is the split's from now on.
func newSplit(t *ticket, script *Script) *split {
	sp := &split{ticket: t}
	hopeless := false
	for i := range t.items {
		it := &t.items[i]
		p := sp.part(Slot(it.key))
		p.items = append(p.items, it)
		if t.charge(it).Shadow {
			p.shadows++
		} else if it.cost > it.plan.Limit {
			hopeless = true
		}
	}
	if hopeless { // refused whatever the slots say: ask them without charging any
		script = scriptPeek
	}
	for _, p := range sp.parts {
		p.fillCall(script)
	}
	return sp
}

func (sp *split) part(slot uint16) *part {
	if i := slices.IndexFunc(sp.parts, func(p *part) bool { return p.slot == slot }); i >= 0 {
		return sp.parts[i]
	}
	p := &part{slot: slot}
	sp.parts = append(sp.parts, p)
	return p
}

func (p *part) fillCall(script *Script) {
	var args arguments
	args.begin(&p.call, script)
	if script == scriptTake {
		args.group(len(p.items), p.shadows)
	}
	for _, it := range p.items {
		args.add(&p.call, it)
	}
	args.end(&p.call)
}

// runSplits sends the parts of all groups at once.
func runSplits(ctx context.Context, conn Conn, splits []*split) {
	var calls []*Call
	for _, sp := range splits {
		for _, p := range sp.parts {
			calls = append(calls, &p.call)
		}
	}
	if len(calls) == 0 {
		return
	}
	conn.Run(ctx, calls)
	for _, sp := range splits {
		for _, p := range sp.parts {
			if p.us, p.replies, p.err = p.call.reply(); p.err != nil {
				p.err = unavailable(p.err)
			}
		}
	}
}

// fill answers the group and, when a part refused, gives back what the others took.
func (sp *split) fill(ctx context.Context) {
	refused := false
	for _, p := range sp.parts {
		refused = refused || p.refused()
	}
	var back []sluice.Charge
	if refused {
		for _, p := range sp.parts {
			if p.err != nil || p.refused() || p.call.Script != scriptTake {
				continue // unknown, or charged nothing
			}
			for i, it := range p.items {
				if p.replies[i] < 0 {
					continue // a shadow limit that was full
				}
				taken := *sp.ticket.charge(it)
				taken.State = sluice.State{Receipt: sluice.Receipt{Time: p.us, ID: it.id}}
				back = append(back, taken)
				p.replies[i] = it.plan.Uncharged(p.replies[i], it.cost)
			}
		}
	}
	sp.fillStates(!refused)
	if len(back) > 0 {
		sp.ticket.store.Give(ctx, back)
	}
}

// refused tells that a limit of this part which can refuse did.
func (p *part) refused() bool {
	if p.err != nil {
		return false
	}
	for _, r := range p.replies[:len(p.items)-p.shadows] {
		if r < 0 {
			return true
		}
	}
	return false
}

func (sp *split) fillStates(taken bool) {
	for _, p := range sp.parts {
		for i, it := range p.items {
			c := sp.ticket.charge(it)
			c.State = sluice.State{Err: p.err}
			if p.err != nil {
				continue
			}
			counter.Fill(&c.State, it.plan.Answer(p.replies[i], it.cost, p.us))
			c.State.Time = p.us
			if taken && p.replies[i] >= 0 { // asked for or not: when another part failed, the caller may want to give this back
				c.State.Receipt = sluice.Receipt{Time: p.us, ID: it.id}
			}
		}
	}
}
