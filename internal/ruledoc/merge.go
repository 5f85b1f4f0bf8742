package ruledoc

import (
	"fmt"
	"maps"

	"github.com/sluicehq/sluice"
)

// Merged is what several texts hold together.
type Merged struct {
	Document Document

	from    [kinds][]origin // of the entries of Document
	leftOut map[RuleName]bool
}

// origin is where an entry was written.
type origin struct {
	source *source
	node   *node // nil where the place is not known
}

// at returns the place of a field, for people.
func (o origin) fault(entry, field string, err error) Fault {
	at := place{}
	if o.node != nil {
		at = o.node.locate(field)
	}
	f := o.source.fault(at, err)
	f.Entry, f.Field = entry, field
	return f
}

func (o origin) String() string {
	if o.node == nil {
		return o.source.name
	}
	return fmt.Sprintf("%s:%d", o.source.name, o.node.at.line)
}

// Merge puts texts together, in their order. Names are unique in all of them: of two entries with the same name the first
// is kept, and the fault of the second names both places. A nil Parsed is passed over.
func Merge(parts ...*Parsed) (*Merged, []Fault) {
	m := &merger{merged: &Merged{leftOut: map[RuleName]bool{}}, rules: map[RuleName]int{}, tiers: map[string]int{}, members: map[Who]string{}}
	for _, p := range parts {
		if p != nil {
			m.add(p)
		}
	}
	for i := range m.merged.Document.Overrides {
		m.checkOverride(i)
	}
	return m.merged, m.faults
}

type merger struct {
	merged  *Merged
	rules   map[RuleName]int
	tiers   map[string]int
	members map[Who]string // the tier each is on
	byRole  *Tier          // the default tier
	faults  []Fault
}

func (m *merger) add(p *Parsed) {
	doc := &m.merged.Document
	for i := range p.Document.Rules {
		m.addRule(p, i)
	}
	for i := range p.Document.Tiers {
		m.addTier(p, i)
	}
	doc.Overrides = append(doc.Overrides, p.Document.Overrides...)
	doc.Exemptions = append(doc.Exemptions, p.Document.Exemptions...)
	doc.Blocks = append(doc.Blocks, p.Document.Blocks...)
	for _, kind := range [...]Kind{OverrideEntry, ExemptionEntry, BlockEntry} {
		for i := range p.places[kind] {
			m.merged.from[kind] = append(m.merged.from[kind], p.origin(kind, i))
		}
	}
	for _, name := range p.leftOut {
		m.merged.leftOut[name] = true
	}
}

func (p *Parsed) origin(kind Kind, i int) origin { return origin{p.source, p.places[kind][i]} }

func (m *merger) addRule(p *Parsed, i int) {
	r, from := &p.Document.Rules[i], p.origin(RuleEntry, i)
	name := nameOf(r)
	if first, taken := m.rules[name]; taken && r.Name != "" {
		m.faults = append(m.faults, from.fault(r.title(), "name",
			fmt.Errorf("%s has the same name: names are unique in a namespace; this one is left out", m.merged.from[RuleEntry][first])))
		return
	}
	m.rules[name] = len(m.merged.Document.Rules)
	m.merged.Document.Rules = append(m.merged.Document.Rules, *r)
	m.merged.from[RuleEntry] = append(m.merged.from[RuleEntry], from)
}

func (m *merger) addTier(p *Parsed, i int) {
	t, from := p.Document.Tiers[i], p.origin(TierEntry, i)
	if first, taken := m.tiers[t.Name]; taken {
		m.faults = append(m.faults, from.fault(t.title(), "name",
			fmt.Errorf("%s has the same name: write all its members there; this one is left out", m.merged.from[TierEntry][first])))
		return
	}
	if t.Default && m.byRole != nil {
		m.faults = append(m.faults, from.fault(t.title(), "default", fmt.Errorf("tier %q is the default already, and stays it", m.byRole.Name)))
		t.Default = false
	}
	if t.Default {
		m.byRole = &t
	}
	m.tiers[t.Name] = len(m.merged.Document.Tiers)
	m.merged.Document.Tiers = append(m.merged.Document.Tiers, t)
	m.merged.from[TierEntry] = append(m.merged.from[TierEntry], from)
	for i, name := range t.Tenants {
		m.addMember(from, &t, fmt.Sprintf("tenants[%d]", i), Who{Tenant: name})
	}
	for i, name := range t.Users {
		m.addMember(from, &t, fmt.Sprintf("users[%d]", i), Who{User: name})
	}
	for i, name := range t.APIKeys {
		m.addMember(from, &t, fmt.Sprintf("api_keys[%d]", i), Who{APIKey: name})
	}
}

func (m *merger) addMember(from origin, t *Tier, field string, who Who) {
	if first, taken := m.members[who]; taken && first != t.Name {
		f := from.fault(t.title(), field, fmt.Errorf("%s is on tier %q already, and stays there", who, first))
		f.Warning = true
		m.faults = append(m.faults, f)
		return
	}
	m.members[who] = t.Name
}

// checkOverride compares an override with its rule. It warns only: rules may be kept elsewhere.
func (m *merger) checkOverride(i int) {
	o := &m.merged.Document.Overrides[i]
	warn := func(field, format string, args ...any) {
		f := m.merged.from[OverrideEntry][i].fault(o.title(), field, fmt.Errorf(format, args...))
		f.Warning = true
		m.faults = append(m.faults, f)
	}
	name := nameOf(&Rule{Namespace: o.Namespace, Name: o.Rule})
	at, found := m.rules[name]
	if !found {
		if !m.merged.leftOut[name] {
			warn("rule", "there is no rule %q in namespace %q", name.Name, name.Namespace)
		}
		return
	}
	rule := &m.merged.Document.Rules[at]
	for j, l := range o.Limits {
		if rule.Action == sluice.Throttle.String() && l.Algorithm != sluice.TokenBucket.String() {
			warn(fmt.Sprintf("limits[%d].algorithm", j), "the rule throttles, which needs a token_bucket")
		}
	}
	if rule.Action == sluice.Allow.String() || rule.Action == sluice.Block.String() {
		warn("limits", "the rule's action is %q, which has no limits to replace", rule.Action)
	}
}

// Compile makes the rule set. A faulty rule is left out alone; lastGood, when it is not nil, is the set that was in force, from
// which such a rule is taken in its last good form, so that a slip of the pen takes no limit away. Held are the rules that
// were taken so.
func (m *Merged) Compile(lastGood *sluice.RuleSet) (set *sluice.RuleSet, held []RuleName, faults []Fault) {
	rules := make([]sluice.Rule, 0, len(m.Document.Rules))
	for i := range m.Document.Rules {
		rule, _ := m.Document.Rules[i].convert() // faulty ones are not in a Merged
		rules = append(rules, rule)
	}
	set, reports := sluice.Compile(rules)
	lost, drop := maps.Clone(m.leftOut), map[int]bool{}
	for _, r := range reports {
		f := m.from[RuleEntry][r.Index].fault(m.Document.Rules[r.Index].title(), r.Field, r.Err)
		f.Warning = r.Warning
		faults = append(faults, f)
		if !r.Warning {
			drop[r.Index] = true
			lost[nameOf(&m.Document.Rules[r.Index])] = true
		}
	}
	if good := find(lastGood, lost, set); len(good) > 0 {
		kept := make([]sluice.Rule, 0, len(rules))
		for i := range rules {
			if !drop[i] {
				kept = append(kept, rules[i])
			}
		}
		for _, r := range good {
			kept, held = append(kept, *r), append(held, RuleName{r.Namespace, r.Name})
		}
		set, _ = sluice.Compile(kept)
	}
	return set, held, faults
}

// find returns the rules of a set that were lost and are not in the new one. It takes from lost what is.
func find(lastGood *sluice.RuleSet, lost map[RuleName]bool, now *sluice.RuleSet) (good []*sluice.Rule) {
	if lastGood == nil || len(lost) == 0 {
		return nil
	}
	for r := range now.Rules() {
		delete(lost, RuleName{r.Namespace, r.Name})
	}
	for r := range lastGood.Rules() {
		if lost[RuleName{r.Namespace, r.Name}] {
			good = append(good, r)
		}
	}
	return good
}
