package sluice

// Matched is a rule that applies to a request.
type Matched struct {
	// Rule belongs to the rule set and must not be modified.
	Rule *Rule
	// Route is the most specific of the rule's patterns that matched, which is what the rule counts by; "" when the
	// rule has no routes.
	Route string
}

// Key returns what the rule counts the request by: the key of each of its limits' counters.
func (m Matched) Key(req *Request) Key {
	key := Key{Namespace: m.Rule.Namespace, Rule: m.Rule.Name}
	for _, d := range m.Rule.Key {
		key.Parts = append(key.Parts, partOf(req, d, m.Route))
	}
	return key
}

// Match appends to dst the rule that applies in each layer, in the order of the layers' names. It allocates nothing when
// dst has room, and takes about as long for a thousand rules as for ten. It is safe for concurrent use.
//
// A rule matches when every field of its Match that is not empty fits the request, and the request has every dimension
// of its Key; an empty string, an invalid address and an attribute that is absent or empty are not had. Of the rules
// of a layer that match, the one with the lowest Priority applies; of equal ones the more specific; then the first by name.
//
// One match is more specific than another when it constrains more fields (each attribute is one); then, when its routes
// are narrower (any route is narrower than none; more literal segments, then no final *, then more parameters); then,
// when its CIDRs are narrower (longer prefixes, an IPv4 bit counting four times); then, when it lists fewer values. A list
// is as narrow as its broadest entry. Validate warns about rules that always lose.
//
// Routes are matched on the path as given, up to a "?": nothing is decoded or cleaned, so doors hand in the path that
// the upstream will see. A trailing slash matters. A parameter matches one segment that is not empty. A final * matches the
// rest of the path, however long, and also nothing: "/api/*" matches "/api/", not "/api". The pattern "*" matches every
// route that is not empty. Methods are compared as they are, and rules hold them in upper case. IPv4 addresses
// written within IPv6 count as IPv4, and zones are ignored; a prefix matches addresses of its own family only.
func (s *RuleSet) Match(dst []Matched, req *Request) []Matched {
	name := req.Namespace
	if name == "" {
		name = DefaultNamespace
	}
	ix := s.namespaces[name]
	if ix == nil {
		return dst
	}
	var c candidates
	walk := routeWalk{found: &c}
	path := pathOf(req.Route)
	ix.find(&walk, path, req)
	for n := c.next(0, len(ix.rules)); n >= 0; n = c.next(int(ix.layerEnd[n]), len(ix.rules)) {
		dst = append(dst, Matched{Rule: ix.rules[n], Route: walk.patternOf(n, ix.rules[n], path)})
	}
	return dst
}

// find leaves the rules that match the request in the walk's candidates.
func (ix *index) find(walk *routeWalk, path string, req *Request) {
	ix.routes.find(walk, path)
	p := picks{from: walk.found}
	ix.methods.pick(&p, req.Method)
	ix.tiers.pick(&p, req.Subject.Tier)
	ix.tenants.pick(&p, req.Subject.Tenant)
	ix.users.pick(&p, req.Subject.User)
	ix.apiKeys.pick(&p, req.Subject.APIKey)
	ix.ips.pick(&p, req.Subject.IP)
	if len(req.Attributes) > 0 {
		for i := range ix.attributes {
			ix.attributes[i].pick(&p, req.Attributes[ix.attributes[i].name])
		}
	} else if ix.plain != nil {
		p.add(ix.plain, absentRow)
	}
	p.keep()
}
