package redisstore

import (
	"context"
	"strconv"

	"github.com/sluicehq/sluice"
)

// Give implements sluice.Store.
func (s *Store) Give(ctx context.Context, charges []sluice.Charge) {
	s.perSlot(ctx, charges, scriptGive, func(args []string, c *sluice.Charge, it *item) []string {
		r := c.State.Receipt
		return append(args, it.plan.Extra.kind, it.costArg, it.plan.Extra.window, strconv.FormatInt(r.Time, 10), strconv.FormatUint(r.ID, 36))
	})
}

// Reset implements sluice.Store.
func (s *Store) Reset(ctx context.Context, charges []sluice.Charge) {
	s.perSlot(ctx, charges, scriptReset, func(args []string, _ *sluice.Charge, _ *item) []string { return args })
}

// perSlot runs a script over counters: one call for all, or one per slot.
func (s *Store) perSlot(ctx context.Context, charges []sluice.Charge, script *Script, addArgs func([]string, *sluice.Charge, *item) []string) {
	t := newTicket()
	t.load(s, [][]sluice.Charge{charges})
	calls := map[uint16]*Call{}
	owners := map[*Call][]*sluice.Charge{}
	for i := range charges {
		c := &charges[i]
		if script == scriptGive && c.State.Receipt == (sluice.Receipt{}) {
			continue // was not taken, or not receipted
		}
		if err := t.addCharge(0, i); err != nil {
			c.State.Err = err
			continue
		}
		it := &t.items[len(t.items)-1]
		slot := uint16(0)
		if s.conn.Sharded() {
			slot = Slot(it.key)
		}
		call := calls[slot]
		if call == nil {
			call = &Call{Script: script}
			calls[slot] = call
		}
		call.Keys = append(call.Keys, it.key)
		call.Args = addArgs(call.Args, c, it)
		owners[call] = append(owners[call], c)
	}
	if len(calls) == 0 {
		return
	}
	all := make([]*Call, 0, len(calls))
	for _, call := range calls {
		all = append(all, call)
	}
	s.conn.Run(ctx, all)
	for _, call := range all {
		if call.Err != nil {
			for _, c := range owners[call] {
				c.State.Err = unavailable(call.Err)
			}
		}
	}
}
