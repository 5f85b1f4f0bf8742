package sluice

import "slices"

// index is the compiled form of one namespace's rules. It never changes once it was built.
//
// Rules are numbered so that each layer's stand together and, within a layer, the one that wins stands first. Every
// dimension that a rule uses has a table from a request's value to the set of rules that accept it. The sets of all
// dimensions intersected are the rules that match; the first of each layer wins.
type index struct {
	rules      []*Rule
	layerEnd   []uint16 // by rule: the number of the first rule behind its layer
	routes     *routeTrie
	ips        *ipTable
	tenants    *table
	users      *table
	apiKeys    *table
	tiers      *table
	methods    *table
	attributes []attributeTable
	plain      *shelf // absentRow: the rules that use no attributes, which are all that a request without any can match
}

type attributeTable struct {
	name string
	*table
}

// newIndex builds the index of rules that are valid and enabled, MaxRules at most. It sorts its argument.
func newIndex(rules []ranked) *index {
	slices.SortFunc(rules, ranked.compare)
	ix := &index{rules: make([]*Rule, len(rules)), layerEnd: make([]uint16, len(rules))}
	for i, end := len(rules)-1, len(rules); i >= 0; i-- {
		if i+1 < len(rules) && rules[i].rule.Layer != rules[i+1].rule.Layer {
			end = i + 1
		}
		ix.rules[i], ix.layerEnd[i] = rules[i].rule, uint16(end)
	}
	ix.routes, ix.ips = newRouteTrie(rules), newIPTable(rules)
	ix.tenants = newTable(rules, Tenant, func(m *Match) []string { return m.Tenants })
	ix.users = newTable(rules, User, func(m *Match) []string { return m.Users })
	ix.apiKeys = newTable(rules, APIKey, func(m *Match) []string { return m.APIKeys })
	ix.methods = newTable(rules, Method, func(m *Match) []string { return m.Methods })
	ix.tiers = newTable(rules, "", func(m *Match) []string { return m.Tiers }) // rules cannot count by tier
	ix.addAttributes(rules)
	return ix
}

func newTable(rules []ranked, d Dimension, values func(*Match) []string) *table {
	use := newDimensionUse()
	for i := range rules {
		n, r := uint16(i), rules[i].rule
		use.accept(n, values(&r.Match)...)
		if slices.Contains(r.Key, d) {
			use.counted[n] = true
		}
	}
	return use.table(len(rules))
}

// addAttributes makes a table for each name of an attribute. A request with attributes looks all of them up, so the time
// of a match grows with the number of different names in a namespace, which are part of its design and few.
func (ix *index) addAttributes(rules []ranked) {
	uses := map[string]*dimensionUse{}
	use := func(name string) *dimensionUse {
		if uses[name] == nil {
			uses[name] = newDimensionUse()
		}
		return uses[name]
	}
	either := newDimensionUse()
	for i := range rules {
		n, r := uint16(i), rules[i].rule
		for name, value := range r.Match.Attributes {
			use(name).accept(n, value)
			either.counted[n] = true
		}
		for _, d := range r.Key {
			if d.isAttribute() {
				use(string(d)).counted[n] = true
				either.counted[n] = true
			}
		}
	}
	ix.plain = either.shelf(len(rules))
	for name, u := range uses {
		ix.attributes = append(ix.attributes, attributeTable{name, u.table(len(rules))})
	}
}
