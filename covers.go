package sluice

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
)

// coverBudget bounds the work of looking for rules that can never win, in comparisons of list entries. Beyond it
// warnings are left out: a warning is a courtesy, and compiling must not grow with the square of the rules.
const coverBudget = 2_000_000

// neverWins reports the rules that always lose to one rule of their layer; rules are those of the index, in its order. It
// finds the suspects with the index itself: a rule that covers another also matches any one request made for that one,
// and most such requests are won by their own rule.
func (ix *index) neverWins(rules []ranked, report func(r ranked, err error)) {
	budget, layer := coverBudget, 0
	for n, r := range rules {
		if r.rule.Layer != rules[layer].rule.Layer {
			layer = n
		}
		var c candidates
		req := witness(r.rule)
		ix.find(&routeWalk{found: &c}, req.Route, req)
		for m := c.next(layer, n); m >= 0 && m < n && budget > 0; m = c.next(m+1, n) {
			if better := rules[m].rule; covers(better, r.rule, &budget) {
				report(r, fmt.Errorf("never wins: rule %q of layer %q comes first and matches all its requests", better.Name, r.rule.Layer))
				break
			}
		}
	}
}

// witness returns a request that the rule matches, and that has as little else as possible. Where the rule leaves a value
// open it is a NUL, which no route pattern contains.
func witness(r *Rule) *Request {
	const open = "\x00"
	pick := func(values []string, d Dimension) string {
		if len(values) > 0 {
			return values[0]
		}
		if slices.Contains(r.Key, d) {
			return open
		}
		return ""
	}
	req := &Request{Method: pick(r.Match.Methods, Method), Attributes: maps.Clone(r.Match.Attributes)}
	req.Subject = Subject{
		Tenant: pick(r.Match.Tenants, Tenant),
		User:   pick(r.Match.Users, User),
		APIKey: pick(r.Match.APIKeys, APIKey),
		Tier:   pick(r.Match.Tiers, ""),
	}
	if len(r.Match.CIDRs) > 0 {
		req.Subject.IP = r.Match.CIDRs[0].Addr()
	} else if slices.Contains(r.Key, IP) {
		req.Subject.IP = netip.IPv4Unspecified()
	}
	if len(r.Match.Routes) > 0 {
		req.Route = examplePath(r.Match.Routes[0], open)
	}
	for _, d := range r.Key {
		if d.isAttribute() && r.Match.Attributes[string(d)] == "" {
			if req.Attributes == nil {
				req.Attributes = map[string]string{}
			}
			req.Attributes[string(d)] = open
		}
	}
	return req
}

// covers tells whether a matches every request that b matches. It may say no where the answer is yes, when only several
// entries of a together cover one of b; it never says yes where the answer is no.
func covers(a, b *Rule, budget *int) bool {
	m, n := &a.Match, &b.Match
	for _, d := range a.Key {
		if !b.ensures(d) {
			return false
		}
	}
	for name, value := range m.Attributes {
		if n.Attributes[name] != value {
			return false
		}
	}
	return listCovers(m.Tiers, n.Tiers, equal, budget) &&
		listCovers(m.Methods, n.Methods, equal, budget) &&
		listCovers(m.Tenants, n.Tenants, equal, budget) &&
		listCovers(m.Users, n.Users, equal, budget) &&
		listCovers(m.APIKeys, n.APIKeys, equal, budget) &&
		listCovers(m.CIDRs, n.CIDRs, prefixCovers, budget) &&
		listCovers(m.Routes, n.Routes, routeCovers, budget)
}

// listCovers tells whether every entry of b is covered by one of a. An empty list is everything.
func listCovers[T any](a, b []T, covers func(a, b T) bool, budget *int) bool {
	if len(a) == 0 {
		return true
	}
	if *budget -= len(a) * len(b); *budget < 0 {
		return false
	}
	for _, y := range b {
		if !slices.ContainsFunc(a, func(x T) bool { return covers(x, y) }) {
			return false
		}
	}
	return len(b) > 0
}

func equal(a, b string) bool { return a == b }

func prefixCovers(a, b netip.Prefix) bool {
	return a.Bits() <= b.Bits() && a.Contains(b.Addr())
}

// ensures tells whether every request that the rule matches has the dimension.
func (r *Rule) ensures(d Dimension) bool {
	if slices.Contains(r.Key, d) {
		return true
	}
	switch d {
	case Tenant:
		return len(r.Match.Tenants) > 0
	case User:
		return len(r.Match.Users) > 0
	case APIKey:
		return len(r.Match.APIKeys) > 0
	case IP:
		return len(r.Match.CIDRs) > 0
	case Route:
		return len(r.Match.Routes) > 0
	case Method:
		return len(r.Match.Methods) > 0
	}
	return r.Match.Attributes[string(d)] != ""
}
