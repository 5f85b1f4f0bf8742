package adminhttp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

// maxFaults is how many are listed: nobody reads more.
const maxFaults = 100

func capFaults(faults []fault) []fault {
	if len(faults) <= maxFaults {
		return faults
	}
	return append(faults[:maxFaults:maxFaults], fault{"", fmt.Sprintf("and %d more: correct these first", len(faults)-maxFaults)})
}

// parseRule reads the written form of a rule of a namespace, and of a name where it is known. Pointers of faults begin with at.
func parseRule(text []byte, namespace, name, at string) (ruledoc.Rule, []fault) {
	if wrong := decode(text, new(json.RawMessage)); wrong != nil {
		return ruledoc.Rule{}, []fault{{at, wrong[0].Detail}}
	}
	parsed, found := ruledoc.Decode("", ruledoc.JSON, slices.Concat([]byte(`{"rules":[`), text, []byte(`]}`)))
	var faults []fault
	for _, f := range found {
		if !f.Warning {
			faults = append(faults, fault{at + pointerOf(f.Field), f.Err.Error()})
		}
	}
	if faults != nil {
		return ruledoc.Rule{}, addFurther(faults, text, at)
	}
	if parsed == nil || len(parsed.Document.Rules) != 1 {
		return ruledoc.Rule{}, []fault{{at, "is no rule: send one object with its fields"}}
	}
	rule := parsed.Document.Rules[0]
	if rule.Name == "" {
		rule.Name = name
	}
	if rule.Namespace == "" {
		rule.Namespace = namespace
	}
	if rule.Namespace != namespace {
		faults = append(faults, fault{at + "/namespace", fmt.Sprintf("is %q, but the rule was sent to %q", rule.Namespace, namespace)})
	}
	if name != "" && rule.Name != name {
		faults = append(faults, fault{at + "/name", fmt.Sprintf("is %q, but the rule was sent to %q: rules are not renamed", rule.Name, name)})
	}
	return rule, faults
}

// addFurther adds what is wrong with the rest of a rule that has fields which cannot be read, so that one round trip mends it all.
func addFurther(faults []fault, text []byte, at string) []fault {
	var rest ruledoc.Rule
	if json.Unmarshal(text, &rest) != nil {
		return faults
	}
	add := func(field string, err error) {
		pointer := at + pointerOf(field)
		if !slices.ContainsFunc(faults, func(f fault) bool { return f.Pointer == pointer }) {
			faults = append(faults, fault{pointer, err.Error()})
		}
	}
	_, found := ruledoc.FromDocument("", ruledoc.Document{Rules: []ruledoc.Rule{rest}})
	for _, f := range found {
		add(f.Field, f.Err)
	}
	rest.Name = "rule" // a missing one may be in the path
	if rule, err := rest.ToRule(); err == nil {
		_, reports := sluice.Compile([]sluice.Rule{rule})
		for _, r := range reports {
			if !r.Warning {
				add(r.Field, r.Err)
			}
		}
	}
	return faults
}

// compile checks rules that can be read: each alone, and together with those in force that stay.
func (h *handler) compile(namespace string, rules []ruledoc.Rule, at func(i int) string, stays func(name string) bool) (faults []fault) {
	list := make([]sluice.Rule, 0, len(rules))
	for i, written := range rules {
		rule, err := written.ToRule()
		if err != nil {
			faults = append(faults, fault{at(i), err.Error()})
		}
		list = append(list, rule)
	}
	if faults != nil {
		return capFaults(faults)
	}
	for rule := range h.opts.Rules().Rules() {
		if rule.Namespace == namespace && stays(rule.Name) {
			list = append(list, *rule)
		}
	}
	if len(list) > sluice.MaxRules {
		return []fault{{"", fmt.Sprintf("there would be %d rules in the namespace: it holds %d at most", len(list), sluice.MaxRules)}}
	}
	_, reports := sluice.Compile(list)
	for _, r := range reports {
		if !r.Warning && r.Index < len(rules) {
			faults = append(faults, fault{at(r.Index) + pointerOf(r.Field), r.Err.Error()})
		}
	}
	return capFaults(faults)
}

// pointerOf makes a JSON pointer of a field such as "limits[1].window".
func pointerOf(field string) string {
	if field == "" {
		return ""
	}
	return "/" + strings.NewReplacer("[", "/", "]", "", ".", "/").Replace(field)
}
