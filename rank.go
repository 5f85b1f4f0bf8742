package sluice

import (
	"cmp"
	"strings"
)

// specificity says how narrow a match is. Of two rules of a layer with the same priority the more specific one wins:
// the one with more constrained fields (each attribute is one); then the one with the narrower routes, where having
// routes beats having none; then the one with the narrower CIDRs; then the one that lists fewer values.
//
// A list is as narrow as its broadest entry. So a rule with a broad pattern cannot come before one with a narrow pattern
// only because it lists a still narrower one as well.
type specificity struct {
	fields int
	route  routeShape
	prefix int
	values int // entries of all lists
}

func specificityOf(m *Match) specificity {
	s := specificity{fields: len(m.Attributes), route: routeShape{literals: -1}, prefix: -1, values: len(m.Routes) + len(m.CIDRs)}
	for _, list := range [...][]string{m.Tenants, m.Users, m.APIKeys, m.Tiers, m.Methods} {
		if len(list) > 0 {
			s.fields++
			s.values += len(list)
		}
	}
	if len(m.Routes) > 0 {
		s.fields++
		for i, text := range m.Routes {
			if shape := shapeOf(text); i == 0 || shape.compare(s.route) > 0 {
				s.route = shape
			}
		}
	}
	if len(m.CIDRs) > 0 {
		s.fields++
		s.prefix = 128
		for _, p := range m.CIDRs {
			n := p.Bits()
			if p.Addr().Is4() {
				n *= 4 // a whole address is 128 in both families
			}
			s.prefix = min(s.prefix, n)
		}
	}
	return s
}

// compare is negative when s is more specific than t.
func (s specificity) compare(t specificity) int {
	return cmp.Or(
		cmp.Compare(t.fields, s.fields),
		s.route.compare(t.route),
		cmp.Compare(t.prefix, s.prefix),
		cmp.Compare(s.values, t.values),
	)
}

// ranked is a rule with what decides its place.
type ranked struct {
	rule   *Rule
	index  int // position in the list handed to Compile
	narrow specificity
}

// compare puts each layer's rules together, and within a layer the one that wins first.
func (r ranked) compare(s ranked) int {
	return cmp.Or(
		strings.Compare(r.rule.Layer, s.rule.Layer),
		cmp.Compare(r.rule.Priority, s.rule.Priority),
		r.narrow.compare(s.narrow),
		strings.Compare(r.rule.Name, s.rule.Name),
	)
}
