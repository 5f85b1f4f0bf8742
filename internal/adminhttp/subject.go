package adminhttp

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/engine"
)

// attributePrefix stands before the name of an attribute in a query: attribute.plan=trial.
const attributePrefix = "attribute."

// readSubject reads what a query tells about a subject and its requests.
func readSubject(query url.Values) (req sluice.Request, faults []fault) {
	req.Namespace = sluice.DefaultNamespace
	var ip string
	fields := map[string]*string{
		"namespace": &req.Namespace, "tenant": &req.Subject.Tenant, "user": &req.Subject.User, "api_key": &req.Subject.APIKey,
		"ip": &ip, "tier": &req.Subject.Tier, "route": &req.Route, "method": &req.Method,
	}
	for name, values := range query {
		attribute, isAttribute := strings.CutPrefix(name, attributePrefix)
		switch field := fields[name]; {
		case len(values) > 1:
			faults = append(faults, fault{name, "is there more than once"})
		case field != nil && values[0] != "":
			*field = values[0]
		case field != nil:
		case isAttribute:
			if req.Attributes == nil {
				req.Attributes = map[string]string{}
			}
			req.Attributes[attribute] = values[0]
		default:
			faults = append(faults, fault{name, "unknown: known are namespace, tenant, user, api_key, ip, tier, route, method, and attribute.NAME"})
		}
	}
	addr, err := engine.Validate(&req, ip)
	req.Subject.IP = addr
	for _, f := range engine.FaultsOf(err) {
		faults = append(faults, fault{f.Path[len(f.Path)-1], f.Problem})
	}
	slices.SortFunc(faults, func(a, b fault) int { return strings.Compare(a.Pointer, b.Pointer) })
	return req, faults
}

// countersOf lists the counters that the subject may have: of every rule that nothing told contradicts, and whose
// dimensions were told. A rule that counts by route has one for each of its patterns, unless the route was told.
func countersOf(rules *sluice.RuleSet, req *sluice.Request) (list []found, needs []untold) {
	for rule := range rules.Rules() {
		if rule.Namespace != req.Namespace || rule.Disabled || len(rule.Limits) == 0 || contradicts(rule, req) {
			continue
		}
		if missing := missingOf(rule, req); missing != nil {
			needs = append(needs, untold{rule.Name, missing})
			continue
		}
		for _, route := range routesOf(rule, req) {
			m := sluice.Matched{Rule: rule, Route: route}
			key := m.Key(req)
			for _, limit := range limitsOf(rule, req.Subject.Overrides) {
				list = append(list, found{m, sluice.Charge{Key: key, Limit: limit, Cost: rule.Cost}})
			}
		}
	}
	return list, needs
}

// contradicts tells that the rule is for others. What was not told contradicts nothing.
func contradicts(rule *sluice.Rule, req *sluice.Request) bool {
	s, m := &req.Subject, &rule.Match
	for _, f := range [...]struct {
		want []string
		got  string
	}{{m.Tenants, s.Tenant}, {m.Users, s.User}, {m.APIKeys, s.APIKey}, {m.Tiers, s.Tier}, {m.Methods, req.Method}} {
		if f.got != "" && len(f.want) > 0 && !slices.Contains(f.want, f.got) {
			return true
		}
	}
	if s.IP.IsValid() && len(m.CIDRs) > 0 && !slices.ContainsFunc(m.CIDRs, func(p netip.Prefix) bool { return p.Contains(s.IP) }) {
		return true
	}
	for name, want := range m.Attributes {
		if got, told := req.Attributes[name]; told && got != want {
			return true
		}
	}
	return req.Route != "" && len(m.Routes) > 0 && len(routesOf(rule, req)) == 0
}

// missingOf lists what the rule counts by and was not told.
func missingOf(rule *sluice.Rule, req *sluice.Request) (missing []string) {
	for _, p := range (sluice.Matched{Rule: rule, Route: "*"}).Key(req).Parts {
		if p.Value == "" && !p.IP.IsValid() {
			missing = append(missing, string(p.Dimension))
		}
	}
	return missing
}

// routesOf lists the patterns that the rule may count the request by: the one that its route matches or, where no route
// was told and the rule counts by it, all. A rule that has none counts by the empty one.
func routesOf(rule *sluice.Rule, req *sluice.Request) []string {
	switch {
	case len(rule.Match.Routes) == 0:
		return []string{""}
	case req.Route != "":
		alone := sluice.Rule{Name: "route", Match: sluice.Match{Routes: rule.Match.Routes}, Limits: rule.Limits}
		set, _ := sluice.Compile([]sluice.Rule{alone})
		for _, m := range set.Match(nil, &sluice.Request{Route: req.Route}) {
			return []string{m.Route}
		}
		return nil
	case slices.Contains(rule.Key, sluice.Route):
		return rule.Match.Routes
	}
	return rule.Match.Routes[:1] // whichever it is, the counter is the same
}

// limitsOf returns the limits in force for a subject with overrides, as the limiter finds them.
func limitsOf(rule *sluice.Rule, overrides []sluice.Override) []sluice.Limit {
	for _, o := range overrides {
		if o.Rule == rule.Name && len(o.Limits) > 0 {
			if slices.ContainsFunc(o.Limits, func(l sluice.Limit) bool { return l.Validate() != nil }) {
				return rule.Limits
			}
			return o.Limits
		}
	}
	return rule.Limits
}
