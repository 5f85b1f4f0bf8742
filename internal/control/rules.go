package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
	"github.com/sluicehq/sluice/internal/rulefeed"
)

// origin is what faults name as the place of an entry.
const origin = "database"

// tierLayer is that of all rules of tiers: one applies to a request, the one with the narrowest routes.
const tierLayer = "tier"

// textOf is a snapshot in the form that the feed reads, with the entries that were left out before.
func textOf(s registry.Snapshot) rulefeed.Text {
	doc := ruledoc.Document{Rules: slices.Clone(s.Rules)}
	for _, t := range s.Tiers {
		doc.Tiers = append(doc.Tiers, ruledoc.Tier{Name: t.Name, DisplayName: t.DisplayName, Default: t.Default})
	}
	for _, namespace := range namespacesOf(s.Rules) {
		for _, t := range s.Tiers {
			doc.Rules = append(doc.Rules, tierRules(namespace, t)...)
		}
	}
	for _, b := range s.Blocks {
		doc.Blocks = append(doc.Blocks, ruledoc.Block{Who: ruledoc.Who{CIDR: b.Who.ID}, Reason: b.Reason, Until: b.Until})
	}
	for _, e := range s.Exemptions {
		doc.Exemptions = append(doc.Exemptions, ruledoc.Exemption{Who: ruledoc.Who{CIDR: e.Who.ID}, Reason: e.Reason})
	}
	text := rulefeed.Text{Name: origin, Document: &doc}
	for _, note := range s.Quarantined {
		fault, rule := leftOut(note)
		text.Faults = append(text.Faults, fault)
		if rule.Name != "" {
			text.LeftOut = append(text.LeftOut, rule)
		}
	}
	return text
}

// bounded keeps the rules in force of each namespace that has more rules than can be compiled: of too many, the compiler would leave out any.
// Other namespaces are not concerned.
func bounded(next, inForce registry.Snapshot) (registry.Snapshot, error) {
	groups := 0
	for _, t := range next.Tiers {
		groups += len(t.Groups)
	}
	counts := map[string]int{}
	for i := range next.Rules {
		counts[next.Rules[i].Namespace]++
	}
	var faults []error
	for namespace, n := range counts {
		if n+groups <= sluice.MaxRules {
			continue
		}
		faults = append(faults, fmt.Errorf("namespace %q has %d rules, those of tiers included: the most is %d, so the ones before go on; match by tier instead of listing users",
			namespace, n+groups, sluice.MaxRules))
		other := func(r ruledoc.Rule) bool { return r.Namespace != namespace }
		kept := slices.DeleteFunc(slices.Clone(inForce.Rules), other)
		next.Rules = append(slices.DeleteFunc(slices.Clone(next.Rules), func(r ruledoc.Rule) bool { return !other(r) }), kept...)
	}
	return next, errors.Join(faults...)
}

// namespacesOf lists the namespaces that have rules, and the default one: tiers act in all of them.
func namespacesOf(rules []ruledoc.Rule) []string {
	names := []string{sluice.DefaultNamespace}
	for i := range rules {
		if n := rules[i].Namespace; n != "" && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// tierRules makes a rule of each of a tier's groups. It counts by user over all routes of the group together.
func tierRules(namespace string, t registry.Tier) []ruledoc.Rule {
	rules := make([]ruledoc.Rule, 0, len(t.Groups))
	for _, g := range t.Groups {
		r := ruledoc.Rule{
			Namespace: namespace, Name: TierRule(t.Name, g.Name), Layer: tierLayer,
			Match: ruledoc.Match{Tiers: []string{t.Name}, Routes: g.Routes},
		}
		if g.Unlimited {
			r.Action = sluice.Allow.String()
		} else {
			r.Key, r.Limits = []string{string(sluice.User)}, g.Limits
		}
		rules = append(rules, r)
	}
	return rules
}

// TierRule names the rule of a tier's group of routes, which overrides and explanations speak of.
func TierRule(tier, group string) string { return "tier:" + tier + ":" + group }

// leftOut reads what is known of a quarantined entry. The rule is set where it is one.
func leftOut(note json.RawMessage) (ruledoc.Fault, ruledoc.RuleName) {
	var q quarantined
	if err := json.Unmarshal(note, &q); err != nil {
		return ruledoc.Fault{File: origin, Err: errors.New("an entry that cannot be read was left out")}, ruledoc.RuleName{}
	}
	fault := ruledoc.Fault{File: origin, Entry: fmt.Sprintf("%s %q", q.Kind, q.Name), Err: errors.New(q.Fault)}
	if q.Kind != registry.KindRule {
		return fault, ruledoc.RuleName{}
	}
	return fault, ruledoc.RuleName{Namespace: q.Namespace, Name: q.Name}
}
