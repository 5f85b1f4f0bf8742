package sluice

import (
	"cmp"
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
	"sort"
)

// ipTable finds the rules that accept an address. Prefixes either contain one another or are disjoint, so they cut the
// addresses into ranges, each with one innermost prefix; a binary search finds the range and with it every rule at once.
type ipTable struct {
	shelf  *shelf
	v4, v6 ipRanges
}

// ipRanges are the ranges of one address family. Range i starts at the address (hi[i], lo[i]) and ends before the next.
type ipRanges struct {
	hi, lo []uint64
	rows   []row // otherRow where no prefix holds
}

// ipKey is an address as a number. IPv4 has only the high part, IPv6 is rarely told apart by the low one.
type ipKey struct{ hi, lo uint64 }

func ipKeyOf(a netip.Addr) ipKey {
	if a.Is4() {
		b := a.As4()
		return ipKey{hi: uint64(binary.BigEndian.Uint32(b[:]))}
	}
	b := a.As16() // without the zone: fe80::1%eth0 is matched as fe80::1
	return ipKey{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

// normalPrefix returns the prefix with its host bits cleared, and IPv4 written within IPv6 as IPv4, because requests'
// addresses are unmapped too. An invalid prefix stays as it is.
func normalPrefix(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	if !p.IsValid() {
		return p
	}
	return p.Masked()
}

// newIPTable builds the table of rules in rank order, or nil when none uses addresses.
func newIPTable(rules []ranked) *ipTable {
	use, prefixes := newDimensionUse(), numbersBy[netip.Prefix]{}
	for i := range rules {
		n, r := uint16(i), rules[i].rule
		if slices.Contains(r.Key, IP) {
			use.counted[n] = true
		}
		for _, p := range r.Match.CIDRs {
			use.closed[n] = true
			prefixes.add(p, n)
		}
	}
	t := &ipTable{shelf: use.shelf(len(rules))}
	if t.shelf == nil {
		return nil
	}
	v4, v6 := ipSweep{shelf: t.shelf}, ipSweep{shelf: t.shelf}
	// Outer before inner, which is what the sweep needs.
	order := func(p, q netip.Prefix) int {
		return cmp.Or(p.Addr().Compare(q.Addr()), cmp.Compare(p.Bits(), q.Bits()))
	}
	for _, p := range slices.SortedFunc(maps.Keys(prefixes), order) {
		if p.Addr().Is4() {
			v4.add(p, prefixes[p])
		} else {
			v6.add(p, prefixes[p])
		}
	}
	t.v4, t.v6 = v4.end(), v6.end()
	t.shelf.seal()
	return t
}

// ipSweep goes over the sorted prefixes of one family and keeps those that are still open on a stack.
type ipSweep struct {
	shelf  *shelf
	ranges ipRanges
	stack  []openPrefix
}

type openPrefix struct {
	prefix netip.Prefix
	rules  row
}

// add opens a prefix, after closing those that end before it.
func (s *ipSweep) add(p netip.Prefix, numbers []uint16) {
	for len(s.stack) > 0 && !s.stack[len(s.stack)-1].prefix.Contains(p.Addr()) {
		s.close()
	}
	rules := s.shelf.put(numbers, s.innermost())
	s.stack = append(s.stack, openPrefix{p, rules})
	s.ranges.put(ipKeyOf(p.Addr()), rules)
}

// close ends the innermost prefix: behind it the one around it goes on.
func (s *ipSweep) close() {
	p := s.stack[len(s.stack)-1].prefix
	s.stack = s.stack[:len(s.stack)-1]
	// Next is invalid where the prefix reaches the end of its family.
	if after := lastOf(p).Next(); after.IsValid() {
		s.ranges.put(ipKeyOf(after), s.innermost())
	}
}

// innermost returns the rules of the innermost open prefix.
func (s *ipSweep) innermost() row {
	if len(s.stack) == 0 {
		return otherRow
	}
	return s.stack[len(s.stack)-1].rules
}

func (s *ipSweep) end() ipRanges {
	for len(s.stack) > 0 {
		s.close()
	}
	return s.ranges
}

// put starts a range. One that starts where the last did replaces it: an inner prefix at the outer one's first address,
// or a prefix right behind another.
func (r *ipRanges) put(from ipKey, rules row) {
	if len(r.rows) == 0 {
		r.hi, r.lo, r.rows = []uint64{0}, []uint64{0}, []row{otherRow}
	}
	if last := len(r.rows) - 1; r.hi[last] == from.hi && r.lo[last] == from.lo {
		r.rows[last] = rules
		return
	}
	r.hi, r.lo, r.rows = append(r.hi, from.hi), append(r.lo, from.lo), append(r.rows, rules)
}

// find returns the rules that accept the address.
func (r *ipRanges) find(k ipKey) row {
	if len(r.rows) == 0 {
		return otherRow
	}
	at := lastUpTo(r.hi, k.hi)
	if r.hi[at] == k.hi && r.lo[at] > k.lo {
		// Several ranges start in this /64, and the address lies before the last of them.
		at = sort.Search(at, func(i int) bool { return r.hi[i] == k.hi && r.lo[i] > k.lo }) - 1
	}
	return r.rows[at]
}

// lastUpTo returns the index of the last number that is not above k. The first is not above it. The loop has no branch
// that depends on the numbers (the compiler moves conditionally), because nobody could foresee it.
func lastUpTo(sorted []uint64, k uint64) int {
	at := 0
	for n := len(sorted); n > 1; {
		half := n / 2
		next := at + half
		if sorted[next] <= k {
			at = next
		}
		n -= half
	}
	return at
}

// pick picks the row of an address. A nil table picks none.
func (t *ipTable) pick(p *picks, a netip.Addr) {
	if t == nil {
		return
	}
	if !a.IsValid() {
		p.add(t.shelf, absentRow)
		return
	}
	a = a.Unmap()
	ranges := &t.v6
	if a.Is4() {
		ranges = &t.v4
	}
	p.add(t.shelf, ranges.find(ipKeyOf(a)))
}

// lastOf returns the last address of a prefix.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().As16()
	first := p.Bits()
	if p.Addr().Is4() {
		first += 96
	}
	for i := first; i < 128; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	a := netip.AddrFrom16(b)
	if p.Addr().Is4() {
		return a.Unmap()
	}
	return a
}
