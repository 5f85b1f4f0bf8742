package main

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/sluicehq/sluice"
)

// world is a set of rules and the requests that meet them. Its shape is the same for any number of rules: a quarter in
// each of four layers, CIDRs in four fifths of one of them, parameters, wildcards, methods, tiers, users and attributes
// throughout. Ten rules already use every dimension and attribute that a thousand do.
type world struct {
	rules []sluice.Rule
	set   *sluice.RuleSet
	n     [4]int // rules of each layer
}

// The layers, in the order in which rules are dealt to them.
const (
	byTenant = iota
	byUserRoute
	byIP
	byUser
)

func newWorld(n int) *world {
	w := &world{}
	for i := range n {
		layer := i % 4
		w.rules = append(w.rules, makers[layer](w.n[layer]))
		w.n[layer]++
	}
	for i := range w.rules {
		r := &w.rules[i]
		r.Name = fmt.Sprintf("rule-%d", i)
		if i%4 != byIP { // there the longer prefix wins
			r.Priority = 10 * (1 + i%3)
		}
		r.Limits = []sluice.Limit{{Limit: 100, Window: time.Minute}}
	}
	return w
}

var makers = [4]func(i int) sluice.Rule{tenantRule, routeRule, ipRule, userRule}

func tenantRule(i int) sluice.Rule {
	r := sluice.Rule{Key: []sluice.Dimension{sluice.Tenant}}
	r.Match.Tenants = []string{fmt.Sprintf("tenant-%d", i)}
	if i%4 == 1 {
		r.Match.Attributes = map[string]string{"region": region(i)}
	}
	return r
}

func routeRule(i int) sluice.Rule {
	r := sluice.Rule{Key: []sluice.Dimension{sluice.User, sluice.Route}}
	switch i % 3 {
	case 0:
		r.Match.Routes = []string{fmt.Sprintf("/api/{version}/service-%d/{id}", i)}
	case 1:
		r.Match.Routes = []string{fmt.Sprintf("/api/v1/service-%d/*", i), fmt.Sprintf("/api/v1/service-%d/{id}/parts", i)}
	case 2:
		r.Match.Routes = []string{fmt.Sprintf("/api/v1/service-%d/items/{id}", i)}
	}
	if i%4 == 0 {
		r.Match.Methods = []string{"GET", "HEAD"}
	}
	return r
}

// ipRule has a CIDR, nested two deep, in four of five cases; in the fifth it goes by an attribute.
func ipRule(i int) sluice.Rule {
	r := sluice.Rule{Key: []sluice.Dimension{sluice.IP}}
	if i%5 == 1 {
		r.Match.Attributes = map[string]string{"edge": edge(i)}
		return r
	}
	r.Match.CIDRs = []netip.Prefix{cidr(i)}
	return r
}

func cidr(i int) netip.Prefix {
	switch {
	case i%5 == 4:
		return netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, byte(i)}), 48)
	case i%10 == 0:
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i)}), 16)
	default: // inside the /16 of the ten it belongs to
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i / 10 * 10), byte(i)}), 24)
	}
}

func userRule(i int) sluice.Rule {
	r := sluice.Rule{Key: []sluice.Dimension{sluice.User}}
	r.Match.Tiers = []string{tier(i)}
	r.Match.Attributes = map[string]string{"plan": plan(i)}
	if i%5 == 1 {
		r.Match.Users = []string{user(i), user(i + 1)}
	}
	return r
}

func region(i int) string { return fmt.Sprintf("region-%d", i%5) }
func edge(i int) string   { return fmt.Sprintf("edge-%d", i) }
func tier(i int) string   { return fmt.Sprintf("tier-%d", i%10) }
func plan(i int) string   { return fmt.Sprintf("plan-%d", i/10) }
func user(i int) string   { return fmt.Sprintf("user-%d", i) }

// requests makes n requests: the first of every ten matches nothing, the others match in three layers or four.
func (w *world) requests(rng *rand.Rand, n int) []sluice.Request {
	list := make([]sluice.Request, n)
	for i := range list {
		var miss [4]bool
		if i%10 == 0 {
			miss = [4]bool{true, true, true, true}
		} else if rng.IntN(2) == 0 {
			miss[rng.IntN(4)] = true
		}
		list[i] = w.request(rng, miss)
	}
	rng.Shuffle(n, func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// request aims at one rule of each layer, and narrowly misses those of the layers told.
func (w *world) request(rng *rand.Rand, miss [4]bool) sluice.Request {
	req := sluice.Request{Method: "GET", Attributes: map[string]string{"request_id": fmt.Sprint(rng.IntN(1000))}}
	w.aimAtTenant(rng, &req, miss[byTenant])
	w.aimAtRoute(rng, &req, miss[byUserRoute])
	w.aimAtIP(rng, &req, miss[byIP])
	w.aimAtUser(rng, &req, miss[byUser])
	return req
}

func (w *world) aimAtTenant(rng *rand.Rand, req *sluice.Request, miss bool) {
	i := rng.IntN(w.n[byTenant])
	req.Attributes["region"] = region(i)
	req.Subject.Tenant = fmt.Sprintf("tenant-%d", i)
	if miss {
		req.Subject.Tenant = fmt.Sprintf("stranger-%d", i)
	}
}

func (w *world) aimAtRoute(rng *rand.Rand, req *sluice.Request, miss bool) {
	i := rng.IntN(w.n[byUserRoute])
	id := rng.IntN(10_000)
	switch i % 3 {
	case 0:
		req.Route = fmt.Sprintf("/api/v%d/service-%d/%d", 1+rng.IntN(3), i, id)
	case 1:
		req.Route = fmt.Sprintf("/api/v1/service-%d/%d/parts", i, id)
	case 2:
		req.Route = fmt.Sprintf("/api/v1/service-%d/items/%d?page=2", i, id)
	}
	if miss {
		req.Route = fmt.Sprintf("/api/v1/unknown-%d/items/%d", i, id)
	}
}

func (w *world) aimAtIP(rng *rand.Rand, req *sluice.Request, miss bool) {
	i := rng.IntN(w.n[byIP])
	rules := w.rules[byIP+4*i].Match
	switch {
	case miss:
		req.Subject.IP = netip.AddrFrom4([4]byte{192, 168, byte(i), 1})
	case len(rules.CIDRs) == 0:
		req.Subject.IP = netip.AddrFrom4([4]byte{192, 168, byte(i), 1})
		req.Attributes["edge"] = edge(i)
	default:
		b := rules.CIDRs[0].Addr().As16()
		b[15] = byte(rng.IntN(256))
		req.Subject.IP = netip.AddrFrom16(b) // IPv4 stays written within IPv6, as a dual-stack socket gives it
	}
}

func (w *world) aimAtUser(rng *rand.Rand, req *sluice.Request, miss bool) {
	i := rng.IntN(w.n[byUser])
	req.Subject.User, req.Subject.Tier = user(i), tier(i)
	req.Attributes["plan"] = plan(i)
	if miss {
		req.Attributes["plan"] = "cancelled"
	}
}

// compile fails when a rule of the bar itself is not as it should be.
func (w *world) compile() error {
	set, reports := sluice.Compile(w.rules)
	if len(reports) > 0 {
		return fmt.Errorf("compile %d rules: %w", len(w.rules), reports[0])
	}
	w.set = set
	return nil
}

func (w *world) cidrs() int {
	different := map[netip.Prefix]bool{}
	for _, r := range w.rules {
		for _, p := range r.Match.CIDRs {
			different[p] = true
		}
	}
	return len(different)
}

func (w *world) layers() int {
	different := map[string]bool{}
	for r := range w.set.Rules() {
		different[r.Layer] = true
	}
	return len(different)
}
