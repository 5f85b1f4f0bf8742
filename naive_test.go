package sluice

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
)

// naiveMatch is the reference: it looks at every rule, one after the other, and shares nothing with the index but types.
func naiveMatch(rules []*Rule, req *Request) []Matched {
	best := map[string]*Rule{}
	for _, r := range rules {
		if r.Namespace != cmp.Or(req.Namespace, "default") || !naiveFits(r, req) {
			continue
		}
		if b := best[r.Layer]; b == nil || naiveBeats(r, b) {
			best[r.Layer] = r
		}
	}
	var won []Matched
	for _, r := range best {
		won = append(won, Matched{r, naiveRoute(r, req)})
	}
	slices.SortFunc(won, func(a, b Matched) int { return strings.Compare(a.Rule.Layer, b.Rule.Layer) })
	return won
}

func naiveFits(r *Rule, req *Request) bool {
	s, m := &req.Subject, &r.Match
	for _, d := range r.Key {
		if !naiveHas(req, d) {
			return false
		}
	}
	for _, f := range []struct {
		list  []string
		value string
	}{{m.Tenants, s.Tenant}, {m.Users, s.User}, {m.APIKeys, s.APIKey}, {m.Tiers, s.Tier}, {m.Methods, req.Method}} {
		if len(f.list) > 0 && !slices.Contains(f.list, f.value) {
			return false
		}
	}
	for name, value := range m.Attributes {
		if req.Attributes[name] != value {
			return false
		}
	}
	if len(m.CIDRs) > 0 && !slices.ContainsFunc(m.CIDRs, func(p netip.Prefix) bool { return p.Contains(s.IP.Unmap().WithZone("")) }) {
		return false
	}
	return !r.Disabled && (len(m.Routes) == 0 || naiveRoute(r, req) != "")
}

func naiveHas(req *Request, d Dimension) bool {
	switch s := &req.Subject; d {
	case Tenant:
		return s.Tenant != ""
	case User:
		return s.User != ""
	case APIKey:
		return s.APIKey != ""
	case IP:
		return s.IP.IsValid()
	case Route:
		return req.Route != ""
	case Method:
		return req.Method != ""
	}
	return req.Attributes[string(d)] != ""
}

// naiveRoute returns the most specific of the rule's patterns that match.
func naiveRoute(r *Rule, req *Request) string {
	path, _, _ := strings.Cut(req.Route, "?")
	best := ""
	for _, pattern := range r.Match.Routes {
		if naivePathFits(pattern, path) && (best == "" || slices.Compare(naiveNarrowness(pattern), naiveNarrowness(best)) > 0 ||
			slices.Equal(naiveNarrowness(pattern), naiveNarrowness(best)) && pattern < best) {
			best = pattern
		}
	}
	return best
}

func naivePathFits(pattern, path string) bool {
	if pattern == "*" {
		return path != ""
	}
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	for i, w := range want {
		switch {
		case i >= len(got):
			return false
		case w == "*":
			return true
		case strings.HasPrefix(w, "{") && got[i] != "":
		case w != got[i]:
			return false
		}
	}
	return len(want) == len(got)
}

// naiveNarrowness is larger for narrower patterns: literals, no wildcard, parameters, then where the literals stand.
func naiveNarrowness(pattern string) []int {
	n := []int{0, 1, 0}
	if pattern == "*" {
		return []int{0, 0, -1}
	}
	for _, part := range strings.Split(pattern, "/")[1:] {
		switch {
		case part == "*":
			n[1] = 0
			n = append(n, 0)
		case strings.HasPrefix(part, "{"):
			n[2]++
			n = append(n, 1)
		default:
			n[0]++
			n = append(n, 2)
		}
	}
	return n
}

// naiveBeats tells whether a wins over b in their layer.
func naiveBeats(a, b *Rule) bool {
	if a.Priority != b.Priority {
		return a.Priority < b.Priority
	}
	if n := slices.Compare(naiveSpecificity(&a.Match), naiveSpecificity(&b.Match)); n != 0 {
		return n > 0
	}
	return a.Name < b.Name
}

func naiveSpecificity(m *Match) []int {
	fields, values := len(m.Attributes), 0
	for _, n := range []int{len(m.Tenants), len(m.Users), len(m.APIKeys), len(m.Tiers), len(m.Methods), len(m.Routes), len(m.CIDRs)} {
		fields, values = fields+min(n, 1), values+n
	}
	broadest := []int{-1, 0, 0}
	for i, p := range m.Routes {
		if n := naiveNarrowness(p)[:3]; i == 0 || slices.Compare(n, broadest) < 0 {
			broadest = n
		}
	}
	prefix := -1
	for i, p := range m.CIDRs {
		if n := p.Bits() * 128 / p.Addr().BitLen(); i == 0 || n < prefix {
			prefix = n
		}
	}
	return append(append([]int{fields}, broadest...), prefix, -values)
}

// oneOf and someOf draw from small worlds, so that rules and requests meet often.
func oneOf[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

func someOf[T any](rng *rand.Rand, share float64, draw func() T) []T {
	if rng.Float64() > share {
		return nil
	}
	list := make([]T, 1+rng.IntN(3))
	for i := range list {
		list[i] = draw()
	}
	return list
}

func randomRules(rng *rand.Rand, n int) []Rule {
	share := rng.Float64() * 0.6
	word := func(prefix string, n int) func() string {
		return func() string { return fmt.Sprint(prefix, rng.IntN(n)) }
	}
	rules := make([]Rule, n)
	for i := range rules {
		r := rule(fmt.Sprint("r", rng.IntN(10*n)), Match{
			Tenants: someOf(rng, share, word("t", 4)), Users: someOf(rng, share, word("u", 6)), APIKeys: someOf(rng, share/2, word("k", 3)),
			Tiers: someOf(rng, share, word("tier", 3)), Methods: someOf(rng, share/2, func() string { return oneOf(rng, "GET", "post", "PUT") }),
			Routes: someOf(rng, share, func() string { return randomPattern(rng) }),
			CIDRs:  someOf(rng, share, func() netip.Prefix { return randomPrefix(rng) }),
		})
		if rng.Float64() < share/2 {
			r.Match.Attributes = map[string]string{oneOf(rng, "plan", "region"): oneOf(rng, "a", "b"), "plan": oneOf(rng, "a", "b")}
		}
		for _, d := range []Dimension{Tenant, User, APIKey, IP, Method, "plan", "device"} {
			if rng.IntN(6) == 0 {
				r.Key = append(r.Key, d)
			}
		}
		if len(r.Match.Routes) > 0 && rng.IntN(2) == 0 {
			r.Key = append(r.Key, Route)
		}
		r.Priority, r.Disabled = rng.IntN(4), rng.IntN(10) == 0
		r.Layer = oneOf(rng, "", "one", "two", "three")
		r.Namespace = oneOf(rng, "", "", "", "other")
		rules[i] = r
	}
	return rules
}

func randomPattern(rng *rand.Rand) string {
	if rng.IntN(30) == 0 {
		return "*"
	}
	pattern := ""
	for range 1 + rng.IntN(4) {
		pattern += "/" + oneOf(rng, "a", "b", "{x}", "{y}", "")
	}
	return pattern + oneOf(rng, "", "", "/*")
}

func randomPrefix(rng *rand.Rand) netip.Prefix {
	addr := randomAddr(rng)
	return netip.PrefixFrom(addr, addr.BitLen()-rng.IntN(20)*addr.BitLen()/32)
}

func randomAddr(rng *rand.Rand) netip.Addr {
	b := byte(rng.IntN(4))
	return oneOf(rng, netip.AddrFrom4([4]byte{10, byte(rng.IntN(3)), byte(rng.IntN(2)) * 255, b}),
		netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, b, 15: byte(rng.IntN(2))}), netip.AddrFrom16([16]byte{10: 255, 11: 255, 12: 10, 15: b}))
}

func randomRequest(rng *rand.Rand) Request {
	maybe := func(prefix string, n int) string {
		if rng.IntN(4) == 0 {
			return ""
		}
		return fmt.Sprint(prefix, rng.IntN(n+1))
	}
	req := Request{Namespace: oneOf(rng, "", "default", "other", "", "none"), Method: oneOf(rng, "", "GET", "POST", "get")}
	req.Subject = Subject{Tenant: maybe("t", 4), User: maybe("u", 6), APIKey: maybe("k", 3), Tier: maybe("tier", 3)}
	if rng.IntN(5) > 0 {
		req.Subject.IP = randomAddr(rng)
	}
	for range rng.IntN(6) {
		req.Route += "/" + oneOf(rng, "a", "b", "c", "")
	}
	req.Route += oneOf(rng, "", "", "?a=/b", "x")
	if rng.IntN(3) > 0 {
		req.Attributes = map[string]string{}
		for _, name := range []string{"plan", "region", "device"} {
			if rng.IntN(3) > 0 {
				req.Attributes[name] = oneOf(rng, "a", "b", "")
			}
		}
	}
	return req
}
