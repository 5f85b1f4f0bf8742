package sluice

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
)

// Explanation tells what would be decided about a request, and why.
type Explanation struct {
	// Decision is what Check would answer now; nothing was charged.
	Decision Decision
	// Rules are all of the request's namespace, layer by layer, and within a layer in the order in which they are tried.
	Rules []ExplainedRule
}

// ExplainedRule tells what one rule has to do with a request.
type ExplainedRule struct {
	// Rule belongs to the rule set and must not be modified.
	Rule *Rule
	// Matches tells that the rule fits the request; Applies, that it is the one of its layer that does.
	Matches, Applies bool
	// Why is a sentence for people: what does not fit, or which rule comes first.
	Why string
}

// Explain tells which rules match a request and why the others do not, and what Check would decide. It charges nothing.
// It looks at every rule of the namespace, so it is for people, not for every request.
func (l *Limiter) Explain(ctx context.Context, req Request) (Explanation, error) {
	var e Explanation
	rules := l.rules.Load()
	if err := l.decide(ctx, &req, &e.Decision, false); err != nil {
		return e, err
	}
	e.Rules = rules.explain(&req)
	return e, nil
}

func (s *RuleSet) explain(req *Request) []ExplainedRule {
	winners := map[string]*Rule{}
	for _, m := range s.Match(nil, req) {
		winners[m.Rule.Layer] = m.Rule
	}
	var list []ranked
	for i, r := range s.rules {
		if r.Namespace == cmp.Or(req.Namespace, DefaultNamespace) {
			list = append(list, ranked{r, i, specificityOf(&r.Match)})
		}
	}
	slices.SortStableFunc(list, ranked.compare)
	explained := make([]ExplainedRule, len(list))
	for i, entry := range list {
		r := entry.rule
		x := ExplainedRule{Rule: r, Why: r.misfit(req)}
		switch winner := winners[r.Layer]; {
		case x.Why != "":
		case winner == r:
			x.Matches, x.Applies, x.Why = true, true, "applies"
		default:
			x.Matches, x.Why = true, fmt.Sprintf("rule %q comes first in layer %q", winner.Name, r.Layer)
		}
		explained[i] = x
	}
	return explained
}

// misfit tells what keeps the rule from matching, or "" when it matches. It says the same as Match, rule by rule; a test
// holds them against each other.
func (r *Rule) misfit(req *Request) string {
	if r.Disabled {
		return "the rule is disabled"
	}
	s, m := &req.Subject, &r.Match
	for _, f := range []struct {
		name   string
		list   []string
		actual string
	}{
		{"tenant", m.Tenants, s.Tenant},
		{"user", m.Users, s.User},
		{"api_key", m.APIKeys, s.APIKey},
		{"tier", m.Tiers, s.Tier},
		{"method", m.Methods, req.Method},
	} {
		if len(f.list) > 0 && !slices.Contains(f.list, f.actual) {
			return fmt.Sprintf("%s is %s, the rule wants %s", f.name, orNone(f.actual), choice(f.list))
		}
	}
	if len(m.Routes) > 0 && !slices.ContainsFunc(m.Routes, func(p string) bool { return routeMatches(p, pathOf(req.Route)) }) {
		return fmt.Sprintf("route is %s, the rule wants %s", orNone(req.Route), choice(m.Routes))
	}
	if len(m.CIDRs) > 0 && !slices.ContainsFunc(m.CIDRs, func(p netip.Prefix) bool { return p.Contains(s.IP.Unmap().WithZone("")) }) {
		return fmt.Sprintf("ip is %s, the rule wants one within %s", orNone(ipText(s.IP)), m.CIDRs)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Attributes)) {
		if req.Attributes[name] != m.Attributes[name] {
			return fmt.Sprintf("attribute %q is %s, the rule wants %q", name, orNone(req.Attributes[name]), m.Attributes[name])
		}
	}
	for _, d := range r.Key {
		if p := partOf(req, d, req.Route); p.Value == "" && !p.IP.IsValid() {
			return fmt.Sprintf("the rule counts by %s, which the request does not tell", d)
		}
	}
	return ""
}

func orNone(value string) string {
	if value == "" {
		return "not told"
	}
	return fmt.Sprintf("%q", value)
}

func ipText(ip netip.Addr) string {
	if !ip.IsValid() {
		return ""
	}
	return ip.String()
}

// choice lists what would fit, the first few of many.
func choice(values []string) string {
	const shown = 8
	if len(values) == 1 {
		return fmt.Sprintf("%q", values[0])
	}
	if len(values) > shown {
		return fmt.Sprintf("one of %q and %d more", values[:shown], len(values)-shown)
	}
	return fmt.Sprintf("one of %q", values)
}
