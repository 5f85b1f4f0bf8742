package sluice

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// RuleSet is a compiled set of rules. It never changes, so it is safe for concurrent use; another set replaces it whole.
// The zero value holds no rules and matches nothing.
type RuleSet struct {
	rules      []*Rule
	namespaces map[string]*index
	revision   Revision
}

// Revision numbers a state of the rules, as whoever keeps them counts. 0 is none.
type Revision int64

// The defaults of a rule.
const (
	DefaultNamespace = "default"
	DefaultPriority  = 100
	DefaultStatus    = 429
)

// globalLayer is the layer of rules that count everyone together.
const globalLayer = "global"

// Compile makes a rule set. It never fails as a whole: a rule with a fault is left out alone, and the faults of all rules
// are reported, in the order of the rules, together with warnings about rules that are kept. Of rules with the same
// name in a namespace the first is kept; of more than MaxRules in a namespace, the first MaxRules.
//
// The set has copies of its own, with the defaults filled in; the caller may go on changing its rules.
func Compile(rules []Rule) (*RuleSet, []*RuleError) {
	set := &RuleSet{namespaces: map[string]*index{}}
	var reports []*RuleError
	names := newNameCheck()
	enabled := map[string][]ranked{}
	for i := range rules {
		r := normalise(&rules[i])
		report := ruleReport{rule: r, index: i}
		report.check(rules[i].Label == "")
		names.check(&report)
		reports = append(reports, report.list...)
		if report.faulty {
			continue
		}
		set.rules = append(set.rules, r)
		if !r.Disabled {
			enabled[r.Namespace] = append(enabled[r.Namespace], ranked{r, i, specificityOf(&r.Match)})
		}
	}
	for namespace, list := range enabled {
		ix := newIndex(list)
		set.namespaces[namespace] = ix
		ix.neverWins(list, func(r ranked, err error) {
			reports = append(reports, &RuleError{Namespace: namespace, Rule: r.rule.Name, Index: r.index, Warning: true, Err: err})
		})
	}
	slices.SortStableFunc(reports, func(a, b *RuleError) int { return cmp.Compare(a.Index, b.Index) })
	return set, reports
}

// Len returns the number of rules, disabled ones included.
func (s *RuleSet) Len() int { return len(s.rules) }

// Rules yields the rules that were kept, in the order they were handed to Compile, with their defaults filled in. They must
// not be modified.
func (s *RuleSet) Rules() iter.Seq[*Rule] { return slices.Values(s.rules) }

// Revision returns the number given by WithRevision, 0 when there was none.
func (s *RuleSet) Revision() Revision { return s.revision }

// WithRevision returns the same rules under a revision. The set itself stays as it is.
func (s *RuleSet) WithRevision(rev Revision) *RuleSet {
	with := *s
	with.revision = rev
	return &with
}

// normalise returns a deep copy with the defaults filled in and values brought to the form they are compared in.
func normalise(from *Rule) *Rule {
	r := *from
	r.Namespace = cmp.Or(r.Namespace, DefaultNamespace)
	r.Priority = cmp.Or(r.Priority, DefaultPriority)
	r.Cost = cmp.Or(r.Cost, 1)
	r.Response.Status = cmp.Or(r.Response.Status, DefaultStatus)
	r.Key = slices.Clone(r.Key)
	r.Limits = slices.Clone(r.Limits)
	m := &r.Match
	m.Tenants, m.Users, m.APIKeys = slices.Clone(m.Tenants), slices.Clone(m.Users), slices.Clone(m.APIKeys)
	m.Tiers, m.Routes = slices.Clone(m.Tiers), slices.Clone(m.Routes)
	m.Methods = slices.Clone(m.Methods)
	for i, method := range m.Methods {
		m.Methods[i] = strings.ToUpper(method)
	}
	m.CIDRs = slices.Clone(m.CIDRs)
	for i, p := range m.CIDRs {
		m.CIDRs[i] = normalPrefix(p)
	}
	m.Attributes = maps.Clone(m.Attributes)
	r.Layer = cmp.Or(r.Layer, layerOf(r.Key))
	r.Label = cmp.Or(r.Label, r.Layer)
	return &r
}

// layerOf names the layer of the rules that count by these dimensions, whatever their order: "user+route".
func layerOf(key []Dimension) string {
	if len(key) == 0 {
		return globalLayer
	}
	names := make([]string, len(key))
	for i, d := range slices.SortedFunc(slices.Values(key), compareDimensions) {
		names[i] = string(d)
	}
	return strings.Join(names, "+")
}

// fieldDimensions are those with a field of their own in a request, in the order in which people name them.
var fieldDimensions = [...]Dimension{Tenant, User, APIKey, IP, Route, Method}

// isAttribute tells whether the dimension is looked up in a request's attributes.
func (d Dimension) isAttribute() bool { return !slices.Contains(fieldDimensions[:], d) }

func compareDimensions(a, b Dimension) int {
	place := func(d Dimension) int {
		if i := slices.Index(fieldDimensions[:], d); i >= 0 {
			return i
		}
		return len(fieldDimensions)
	}
	return cmp.Or(cmp.Compare(place(a), place(b)), strings.Compare(string(a), string(b)))
}

// nameCheck finds what is wrong with rules only next to others: names given twice, and too many of them.
type nameCheck struct {
	first map[ruleName]int
	kept  map[string]int
}

type ruleName struct{ namespace, name string }

func newNameCheck() nameCheck {
	return nameCheck{first: map[ruleName]int{}, kept: map[string]int{}}
}

// check comes after all other checks of the rule, because a rule that is left out does not count.
func (c nameCheck) check(r *ruleReport) {
	id := ruleName{r.rule.Namespace, r.rule.Name}
	if first, taken := c.first[id]; !taken {
		c.first[id] = r.index
	} else if id.name != "" {
		r.fault("name", "rule %d of the list has the same name: names are unique in a namespace", first+1)
	}
	if r.faulty {
		return
	}
	if c.kept[id.namespace]++; c.kept[id.namespace] > MaxRules {
		r.fault("", "namespace %q already has %d rules, the most it can hold", id.namespace, MaxRules)
	}
}

// ruleReport gathers what is to say about one rule.
type ruleReport struct {
	rule   *Rule
	index  int
	list   []*RuleError
	faulty bool
}

func (r *ruleReport) fault(field, format string, args ...any) {
	r.faulty = true
	r.add(field, false, fmt.Errorf(format, args...))
}

func (r *ruleReport) warn(field, format string, args ...any) {
	r.add(field, true, fmt.Errorf(format, args...))
}

func (r *ruleReport) add(field string, warning bool, err error) {
	r.list = append(r.list, &RuleError{
		Namespace: r.rule.Namespace, Rule: r.rule.Name, Index: r.index, Field: field, Warning: warning, Err: err,
	})
}
