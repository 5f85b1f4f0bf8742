package main

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
)

// scan is what the index must equal: it looks at the rules one by one, as they were written, and shares no code with it.
// It returns layer → rule and route.
func scan(rules []sluice.Rule, req *sluice.Request) map[string]string {
	best := map[string]*sluice.Rule{}
	for i := range rules {
		r := &rules[i]
		if !fits(r, req) {
			continue
		}
		if b := best[layer(r)]; b == nil || rank(r, b) < 0 {
			best[layer(r)] = r
		}
	}
	answer := map[string]string{}
	for name, r := range best {
		answer[name] = r.Name + " " + route(r, req)
	}
	return answer
}

// found writes the index's answer as scan does.
func found(matched []sluice.Matched) map[string]string {
	answer := map[string]string{}
	for _, m := range matched {
		if _, twice := answer[m.Rule.Layer]; twice {
			answer["twice"] = m.Rule.Layer
		}
		answer[m.Rule.Layer] = m.Rule.Name + " " + m.Route
	}
	return answer
}

func equal(a, b map[string]string) bool { return maps.Equal(a, b) }

func layer(r *sluice.Rule) string {
	names := make([]string, len(r.Key))
	for i, d := range r.Key {
		names[i] = string(d) // the bar writes its keys in the order in which layers are named
	}
	return strings.Join(names, "+")
}

func fits(r *sluice.Rule, req *sluice.Request) bool {
	m, s := &r.Match, &req.Subject
	for _, d := range r.Key {
		if d == sluice.Tenant && s.Tenant == "" || d == sluice.User && s.User == "" || d == sluice.IP && !s.IP.IsValid() {
			return false
		}
	}
	for name, value := range m.Attributes {
		if req.Attributes[name] != value {
			return false
		}
	}
	listed := func(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }
	inside := len(m.CIDRs) == 0 || slices.ContainsFunc(m.CIDRs, func(p netip.Prefix) bool { return p.Contains(s.IP.Unmap()) })
	return inside && listed(m.Tenants, s.Tenant) && listed(m.Users, s.User) && listed(m.Tiers, s.Tier) && listed(m.Methods, req.Method) &&
		(len(m.Routes) == 0 || route(r, req) != "")
}

// route returns the narrowest pattern of the rule that matches.
func route(r *sluice.Rule, req *sluice.Request) string {
	path, _, _ := strings.Cut(req.Route, "?")
	best := ""
	for _, pattern := range r.Match.Routes {
		if pathFits(strings.Split(pattern, "/"), strings.Split(path, "/")) && (best == "" || slices.Compare(narrowness(pattern), narrowness(best)) > 0) {
			best = pattern
		}
	}
	return best
}

func pathFits(pattern, path []string) bool {
	for i, p := range pattern {
		if i == len(path) || p != path[i] && p != "*" && (p == "" || p[0] != '{' || path[i] == "") {
			return false
		}
		if p == "*" {
			return true
		}
	}
	return len(pattern) == len(path)
}

// narrowness: literal segments, then no wildcard, then parameters.
func narrowness(pattern string) []int {
	n := []int{0, 1, 0}
	for _, part := range strings.Split(pattern, "/")[1:] {
		switch {
		case part == "*":
			n[1] = 0
		case strings.HasPrefix(part, "{"):
			n[2]++
		default:
			n[0]++
		}
	}
	return n
}

// rank is negative when a wins over b: by priority, then by the narrower match, then by name.
func rank(a, b *sluice.Rule) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), slices.Compare(matchNarrowness(&b.Match), matchNarrowness(&a.Match)), strings.Compare(a.Name, b.Name))
}

func matchNarrowness(m *sluice.Match) []int {
	fields, values := len(m.Attributes), 0
	for _, n := range []int{len(m.Tenants), len(m.Users), len(m.Tiers), len(m.Methods), len(m.Routes), len(m.CIDRs)} {
		fields, values = fields+min(n, 1), values+n
	}
	widest, prefix := []int{-1, 0, 0}, -1
	for i, pattern := range m.Routes {
		if n := narrowness(pattern); i == 0 || slices.Compare(n, widest) < 0 {
			widest = n
		}
	}
	for i, p := range m.CIDRs {
		if n := p.Bits() * 128 / p.Addr().BitLen(); i == 0 || n < prefix {
			prefix = n
		}
	}
	return append(append([]int{fields}, widest...), prefix, -values)
}
