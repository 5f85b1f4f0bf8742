package envoyrls

import (
	"math/bits"
	"net/netip"
	"strconv"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/envoyrls/pattern"
)

// call is one call while it is worked on: a request for each descriptor, in their order. It is pooled.
type call struct {
	reqs       []sluice.Request
	decisions  []sluice.Decision
	tasks      []task
	patterns   []string            // by descriptor; "" for none
	attributes []map[string]string // one for each descriptor seen so far, kept when the call ends
	overrides  []sluice.Override
	matched    []sluice.Matched
	entries    []byte
	mixed      bool // not all descriptors are charged
}

// task is what is done about a descriptor.
type task uint8

const (
	charge task = iota
	peek
	refund
	refuse // a caller's limit of zero, which needs no counter
)

// reset forgets everything that refers to the call. What it keeps is bounded by the most descriptors of a call.
func (c *call) reset() {
	clear(c.reqs)
	clear(c.decisions)
	clear(c.tasks)
	clear(c.patterns)
	clear(c.overrides)
	clear(c.matched)
	for _, m := range c.attributes[:len(c.reqs)] {
		clear(m)
	}
	c.reqs, c.decisions, c.tasks, c.patterns = c.reqs[:0], c.decisions[:0], c.tasks[:0], c.patterns[:0]
	c.overrides, c.matched, c.mixed = c.overrides[:0], c.matched[:0], false
}

// grow makes room for the requests of n descriptors, all zero.
func (c *call) grow(n int) {
	c.reqs, c.decisions = extend(c.reqs, n), extend(c.decisions, n)
	c.tasks, c.patterns = extend(c.tasks, n), extend(c.patterns, n)
	for len(c.attributes) < n {
		c.attributes = append(c.attributes, make(map[string]string, 4))
	}
}

// extend returns n elements that are zero, of a slice whose elements all are.
func extend[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// add makes a request of a descriptor. d is nil when no rule is in the domain.
func (c *call) add(i int, d *domain, rules *sluice.RuleSet, req *pb.RateLimitRequest, from *ratelimit.RateLimitDescriptor) {
	to := &c.reqs[i]
	to.Namespace, to.Attributes = req.GetDomain(), c.attributes[i]
	for _, e := range from.GetEntries() {
		identify(to, e.GetKey(), e.GetValue())
	}
	t := taskOf(to, req, from)
	if d != nil {
		c.describe(d, i, from)
		if from.GetLimit() != nil && !c.override(d, rules, i, from) {
			t = refuse
		}
	}
	c.tasks[i] = t
	c.mixed = c.mixed || t != charge
}

// taskOf says what is done, and puts the cost into the request. A call that names no addend costs what the rule says,
// which is 1 unless it says otherwise.
func taskOf(to *sluice.Request, req *pb.RateLimitRequest, from *ratelimit.RateLimitDescriptor) task {
	to.Cost = int64(req.GetHitsAddend())
	if own := from.GetHitsAddend(); own != nil {
		if to.Cost = int64(own.GetValue()); to.Cost == 0 {
			return peek
		}
	}
	if from.GetIsNegativeHits() {
		to.Cost = max(to.Cost, 1)
		return refund
	}
	return charge
}

// identify fills the fields that every door fills, from entries by the names that people give them. Of several entries
// for one field the first is taken.
func identify(to *sluice.Request, key, value string) {
	field := (*string)(nil)
	switch key {
	case "user":
		field = &to.Subject.User
	case "tenant":
		field = &to.Subject.Tenant
	case "api_key":
		field = &to.Subject.APIKey
	case "tier":
		field = &to.Subject.Tier
	case "route", "path":
		field = &to.Route
	case "method":
		field = &to.Method
	case "ip", "remote_address":
		if !to.Subject.IP.IsValid() {
			addr, _ := netip.ParseAddr(value) // what is no address leaves it unknown
			to.Subject.IP = addr.Unmap().WithZone("")
		}
		return
	}
	if field != nil && *field == "" {
		*field = value
	}
}

// describe sets the attributes that rules of the domain ask for.
func (c *call) describe(d *domain, i int, from *ratelimit.RateLimitDescriptor) {
	entries, attributes := from.GetEntries(), c.attributes[i]
	positions := d.positions
	if from.GetLimit() == nil || len(d.callers) == 0 {
		if n := d.tree.find(entries); n != nil && n.text != "" {
			attributes[pattern.Attribute], c.patterns[i] = n.text, n.text
			positions |= n.positions
		}
	}
	for ; positions != 0; positions &= positions - 1 {
		if at := bits.TrailingZeros64(positions); at < len(entries) {
			attributes[positionNames[at]] = present(entries[at].GetValue())
		}
	}
	if len(d.named) == 0 {
		return
	}
	for _, e := range entries {
		if key := e.GetKey(); d.named[key] && attributes[key] == "" {
			attributes[key] = e.GetValue()
		}
	}
}

// positionNames are the attributes of the entries' values.
var positionNames = func() (names [pattern.MaxDepth]string) {
	for i := range names {
		names[i] = pattern.Position(i + 1)
	}
	return names
}()

// present makes a text of every value that is not empty, because an empty attribute counts as absent, and that is the
// text of no other value.
func present(value string) string {
	if value == "" || value[0] == 0 {
		return "\x00" + value
	}
	return value
}

// override puts the caller's limit in the place of the rules': of those made for such limits, where the domain has them,
// else of all that match. It tells false when the limit admits nothing.
func (c *call) override(d *domain, rules *sluice.RuleSet, i int, from *ratelimit.RateLimitDescriptor) bool {
	window, _ := windowOf(from.GetLimit()) // checked before
	limits := []sluice.Limit{{Algorithm: sluice.FixedWindow, Limit: int64(from.GetLimit().GetRequestsPerUnit()), Window: window}}
	if limits[0].Limit == 0 {
		return false
	}
	to, first := &c.reqs[i], len(c.overrides)
	if len(d.callers) > 0 {
		to.Attributes[pattern.Limit] = pattern.CallersLimit
		to.Attributes[pattern.Entries] = c.entriesOf(from)
		for _, name := range d.callers {
			c.overrides = append(c.overrides, sluice.Override{Rule: name, Limits: limits})
		}
	} else {
		c.matched = rules.Match(c.matched[:0], to)
		for _, m := range c.matched {
			c.overrides = append(c.overrides, sluice.Override{Rule: m.Rule.Name, Limits: limits})
		}
	}
	to.Subject.Overrides = c.overrides[first:len(c.overrides):len(c.overrides)]
	return true
}

// entriesOf writes all entries into one text, each part behind its length, so that no two descriptors have the same.
func (c *call) entriesOf(from *ratelimit.RateLimitDescriptor) string {
	b := c.entries[:0]
	for _, e := range from.GetEntries() {
		for _, part := range [...]string{e.GetKey(), e.GetValue()} {
			b = append(strconv.AppendInt(b, int64(len(part)), 10), ':')
			b = append(b, part...)
		}
	}
	c.entries = b
	return string(b)
}

// markBeside tells descriptors of a pattern beside which they stand, where a rule of theirs asks for it.
func (c *call) markBeside(d *domain) {
	if d == nil || len(d.beside) == 0 {
		return
	}
	for i, own := range c.patterns {
		for j, other := range c.patterns {
			if i != j && own != "" && d.beside[beside{own, other}] {
				c.attributes[i][pattern.Beside] = other
				break
			}
		}
	}
}
