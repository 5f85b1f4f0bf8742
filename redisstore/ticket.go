package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"time"
	"unsafe"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/algo"
	"github.com/sluicehq/sluice/internal/counter"
)

// ticket carries one caller's charges through a script call: what to send, and what came back. It is pooled, and owns
// every byte that is sent, because a caller who has given up may be gone when the reply arrives.
type ticket struct {
	store  *Store
	groups [][]sluice.Charge // the caller's; only touched by the caller
	from   int               // groups from:to are in the current call
	to     int

	items []item
	sizes []groupSize // of the groups in items
	bytes []byte      // keys and numbers, referred to by the strings in items
	buf   []byte

	call    Call
	calls   [1]*Call
	args    arguments
	us      int64   // store time of the reply; 0 when the script does not tell
	replies []int64 // one per item
	err     error
	peeked  bool // the current call charges nothing

	wake     chan struct{}
	deadline time.Time // the caller's; zero: none
	flight   *flight   // set when woken to lead; guarded by the sharer's mutex, as are the next two
	queued   bool
	gone     bool // its caller gave up while it was under way
}

type groupSize struct{ limits, shadows int }

// item is one charge on its way.
type item struct {
	group, index int // where its charge stands in groups
	plan         *counter.Plan[preparedArgs]
	cost         int64
	id           uint64
	key          string
	costArg      string
	lastArg      string // TTL, or a log's id
}

// maxGroups is how many decisions one script call carries. 32 hold Redis for about 0.2 ms; more would delay others.
const maxGroups = 32

func newTicket() *ticket {
	t := &ticket{
		items: make([]item, 0, 8),
		bytes: make([]byte, 0, 1024),
		buf:   make([]byte, 0, 256),
		wake:  make(chan struct{}, 1),
	}
	t.calls[0] = &t.call
	return t
}

func (t *ticket) load(s *Store, groups [][]sluice.Charge) {
	t.store, t.groups, t.from, t.to, t.peeked = s, groups, 0, 0, false
}

// clear drops what belongs to the caller and to one use.
func (t *ticket) clear() {
	t.groups = nil
	clear(t.items)
	t.items = t.items[:0]
}

// next prepares the next call: up to maxGroups groups. It returns false when none is left.
func (t *ticket) next() bool {
	t.items, t.sizes, t.bytes = t.items[:0], t.sizes[:0], t.bytes[:0]
	t.us, t.err, t.replies = 0, nil, t.replies[:0]
	t.from = t.to
	for t.to < len(t.groups) && t.to-t.from < maxGroups && (len(t.items) == 0 || len(t.items)+len(t.groups[t.to]) <= maxCharges) {
		t.add(t.to)
		t.to++
	}
	if len(t.items) == 0 && t.to < len(t.groups) {
		return t.next() // every group was invalid
	}
	return len(t.items) > 0
}

// add encodes one group: limits that can refuse first, shadow limits last. An invalid group is answered here.
func (t *ticket) add(g int) {
	group := t.groups[g]
	if len(group) > maxCharges {
		counter.Fail(group, sluice.ErrInvalidRequest)
		return
	}
	first, shadows := len(t.items), 0
	for _, shadow := range [...]bool{false, true} {
		for i := range group {
			if group[i].Shadow != shadow {
				continue
			}
			if err := t.addCharge(g, i); err != nil {
				t.items = t.items[:first]
				counter.Fail(group, err)
				return
			}
			if shadow {
				shadows++
			}
		}
	}
	for i := first; i < len(t.items); i++ {
		for j := first; j < i; j++ {
			if t.items[i].key == t.items[j].key {
				t.items = t.items[:first]
				counter.Fail(group, sluice.ErrSameCounter)
				return
			}
		}
	}
	if n := len(t.items) - first; n > 0 {
		t.sizes = append(t.sizes, groupSize{n, shadows})
	}
}

func (t *ticket) addCharge(g, i int) error {
	c := &t.groups[g][i]
	plan := t.store.plans.For(c)
	if plan.Err != nil {
		return plan.Err
	}
	if c.Cost < 0 {
		return sluice.ErrInvalidRequest
	}
	it := item{group: g, index: i, plan: plan, cost: plan.Cost(c.Cost), costArg: plan.Extra.cost, lastArg: plan.Extra.ttl}
	if c.Cost != 1 {
		it.costArg = t.text(strconv.AppendInt(t.bytes, it.cost, 10))
	}
	if plan.Kind == algo.SlidingLog {
		it.id = t.store.ids.next()
		it.lastArg = t.text(strconv.AppendUint(t.bytes, it.id, 36))
	}
	var key []byte
	key, t.buf = appendKey(t.bytes, t.buf, t.store.hashKey, c)
	it.key = t.text(key)
	t.items = append(t.items, it)
	return nil
}

// text returns what was appended to t.bytes as a string without copying it. The bytes are not written again before
// the call is over, and after an error never; when the slice grew, the strings keep its former memory alive.
func (t *ticket) text(grown []byte) string {
	n := len(t.bytes)
	t.bytes = grown
	return unsafe.String(unsafe.SliceData(grown[n:]), len(grown)-n)
}

// alone tells that the cheaper script for one limit can answer: nobody needs the store's time.
func (t *ticket) alone() bool {
	if len(t.items) != 1 || t.items[0].plan.Timed() {
		return false
	}
	return !t.charge(&t.items[0]).Receipted
}

// send runs the current call by itself.
func (t *ticket) send(ctx context.Context, conn Conn, script *Script) error {
	t.prepare(script)
	conn.Run(ctx, t.calls[:])
	t.receive(&t.call, 0)
	return t.err
}

// prepare makes the ticket's own call: the cheaper script where one limit travels alone.
func (t *ticket) prepare(script *Script) {
	t.peeked = script == scriptPeek
	if !t.peeked && t.alone() {
		t.items[0].fillOne(&t.call)
	} else {
		t.args.begin(&t.call, script)
		t.addTo(&t.args, &t.call)
		t.args.end(&t.call)
	}
}

// addTo appends the ticket's charges to a call; peek has no groups.
func (t *ticket) addTo(a *arguments, c *Call) {
	next := 0
	for _, size := range t.sizes {
		if c.Script == scriptTake {
			a.group(size.limits, size.shadows)
		}
		for range size.limits {
			a.add(c, &t.items[next])
			next++
		}
	}
}

func (c *Call) reset() {
	c.Keys, c.Args, c.Out, c.Err = c.Keys[:0], c.Args[:0], c.Out[:0], nil
}

// fillOne makes the call for a single limit.
func (it *item) fillOne(c *Call) {
	c.reset()
	c.Script = scriptOne[it.plan.Kind]
	c.Keys = append(c.Keys, it.key)
	c.Args = append(c.Args, it.costArg, it.plan.Extra.limit, it.plan.Extra.window, it.lastArg)
}

// receive copies the ticket's part of a reply, which starts at item number first of the call.
func (t *ticket) receive(c *Call, first int) {
	us, replies, err := c.reply()
	if err != nil {
		t.err = unavailable(err)
		return
	}
	t.us = us
	t.replies = append(t.replies[:0], replies[first:first+len(t.items)]...)
}

// reply returns the store's time, where the script tells it, and one integer per key.
func (c *Call) reply() (us int64, replies []int64, err error) {
	replies = c.Out
	want := len(c.Keys)
	if c.Script.timed {
		want++
	}
	switch {
	case c.Err != nil:
		return 0, nil, c.Err
	case len(replies) != want:
		return 0, nil, fmt.Errorf("script %s replied %d integers, want %d", c.Script.Name, len(replies), want)
	case c.Script.timed:
		us, replies = replies[0], replies[1:]
	}
	return us, replies, nil
}

// fill answers the caller's charges from the replies, or with an error.
func (t *ticket) fill(err error) {
	for i := range t.items {
		it := &t.items[i]
		c := t.charge(it)
		c.State = sluice.State{Err: err}
		if err != nil {
			continue
		}
		counter.Fill(&c.State, it.plan.Answer(t.replies[i], it.cost, t.us))
		c.State.Time = t.us
		if c.Receipted && !t.peeked && t.replies[i] >= 0 && t.passed(it.group) {
			c.State.Receipt = sluice.Receipt{Time: t.us, ID: it.id}
		}
	}
}

func (t *ticket) charge(it *item) *sluice.Charge { return &t.groups[it.group][it.index] }

// passed tells whether no limit of a group refused.
func (t *ticket) passed(group int) bool {
	for i := range t.items {
		if it := &t.items[i]; it.group == group && t.replies[i] < 0 && !t.charge(it).Shadow {
			return false
		}
	}
	return true
}
