package envoyrls

import (
	"log/slog"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/envoyrls/pattern"
)

// domain is what the rules of one namespace ask of descriptors, so that nothing else is made of them. It never changes.
type domain struct {
	tree      node
	positions uint64          // entries that rules without a pattern ask for, by bit
	named     map[string]bool // attributes that rules ask for, apart from those of package pattern
	beside    map[beside]bool
	callers   []string // rules that count by the limits that callers bring
	unlimited bool     // a rule allows by the label Unlimited
}

// beside is a pattern that rules treat otherwise when another one stands beside it in the same call.
type beside struct{ own, other string }

// domains are those of one rule set.
type domains struct {
	of     *sluice.RuleSet
	byName map[string]*domain
}

// readDomains reads what a rule set asks for. A pattern that cannot be read is reported, and its rule matches nothing.
func readDomains(rules *sluice.RuleSet, log *slog.Logger) *domains {
	ds := &domains{of: rules, byName: map[string]*domain{}}
	for r := range rules.Rules() {
		if r.Disabled {
			continue
		}
		d := ds.byName[r.Namespace]
		if d == nil {
			d = &domain{named: map[string]bool{}, beside: map[beside]bool{}}
			ds.byName[r.Namespace] = d
		}
		if err := d.read(r); err != nil {
			log.Warn("a rule never matches: correct its descriptor", "namespace", r.Namespace, "rule", r.Name, "error", err)
		}
	}
	return ds
}

// read takes in one rule.
func (d *domain) read(r *sluice.Rule) error {
	positions := &d.positions
	if text := r.Match.Attributes[pattern.Attribute]; text != "" {
		p, err := pattern.Parse(text)
		if err != nil {
			return err
		}
		n := d.tree.put(p)
		n.text, positions = text, &n.positions
		if other := r.Match.Attributes[pattern.Beside]; other != "" {
			d.beside[beside{text, other}] = true
		}
	}
	if r.Match.Attributes[pattern.Limit] == pattern.CallersLimit {
		d.callers = append(d.callers, r.Name)
	}
	d.unlimited = d.unlimited || r.Action == sluice.Allow && r.Label == pattern.Unlimited
	for name := range r.Match.Attributes {
		d.want(name, positions)
	}
	for _, dimension := range r.Key {
		d.want(string(dimension), positions)
	}
	return nil
}

// want notes that a rule asks for an attribute.
func (d *domain) want(name string, positions *uint64) {
	switch name {
	case pattern.Attribute, pattern.Beside, pattern.Limit, pattern.Entries:
		return
	}
	if number, ok := strings.CutPrefix(name, pattern.Attribute+"."); ok {
		if n, err := strconv.Atoi(number); err == nil && n >= 1 && n <= pattern.MaxDepth {
			*positions |= 1 << (n - 1)
			return
		}
	}
	d.named[name] = true
}
