package sluice

// scratch is what one decision needs while it is made. It is pooled, so that a decision allocates nothing.
type scratch struct {
	matched []Matched
	owners  []Matched // whose rule each charge is
	charges []Charge
	parts   []Part // of all charges' keys
	groups  [1][]Charge
	block   *Rule // set when a rule blocks the request
	lane    uint32
}

func newScratch(lane uint32) *scratch {
	return &scratch{
		lane:    lane,
		matched: make([]Matched, 0, 8),
		owners:  make([]Matched, 0, 8),
		charges: make([]Charge, 0, 8),
		parts:   make([]Part, 0, 16),
	}
}

// clear forgets everything that refers to the request.
func (s *scratch) clear() {
	clear(s.matched)
	clear(s.owners)
	clear(s.charges)
	clear(s.parts)
	s.matched, s.owners, s.charges, s.parts = s.matched[:0], s.owners[:0], s.charges[:0], s.parts[:0]
	s.groups[0], s.block = nil, nil
}

// match finds the rules that apply and makes their charges. It stops at a rule that blocks: such a request is charged
// nowhere.
func (s *scratch) match(rules *RuleSet, req *Request) {
	s.matched = rules.Match(s.matched, req)
	for _, m := range s.matched {
		if m.Rule.Action == Block {
			s.block = m.Rule
			return
		}
	}
	for _, m := range s.matched {
		if m.Rule.Action == Allow {
			continue
		}
		limits := m.Rule.Limits
		if len(req.Subject.Overrides) > 0 {
			limits = overridden(req.Subject.Overrides, m.Rule)
		}
		cost := req.Cost
		if cost == 0 {
			cost = m.Rule.Cost
		}
		for _, limit := range limits {
			s.add(req, m, limit, cost)
		}
	}
}

// overridden returns the limits of a rule for a subject with overrides. An invalid override is passed over: the rule's
// own limits are better than none.
func overridden(overrides []Override, rule *Rule) []Limit {
	for _, o := range overrides {
		if o.Rule != rule.Name || len(o.Limits) == 0 {
			continue
		}
		for _, limit := range o.Limits {
			if limit.Validate() != nil {
				return rule.Limits
			}
		}
		return o.Limits
	}
	return rule.Limits
}

// add appends the charge of one limit.
func (s *scratch) add(req *Request, m Matched, limit Limit, cost int64) {
	from := len(s.parts)
	for _, dimension := range m.Rule.Key {
		s.parts = append(s.parts, partOf(req, dimension, m.Route))
	}
	c := Charge{
		Key:       Key{Namespace: m.Rule.Namespace, Rule: m.Rule.Name, Parts: s.parts[from:len(s.parts):len(s.parts)]},
		Limit:     limit,
		Cost:      cost,
		Shadow:    m.Rule.Action == Shadow,
		Receipted: req.Refundable,
	}
	if m.Rule.Action == Throttle {
		c.MaxDelay = m.Rule.MaxDelay
	}
	s.charges = append(s.charges, c)
	s.owners = append(s.owners, m)
}

func partOf(req *Request, dimension Dimension, route string) Part {
	p := Part{Dimension: dimension}
	switch dimension {
	case Tenant:
		p.Value = req.Subject.Tenant
	case User:
		p.Value = req.Subject.User
	case APIKey:
		p.Value = req.Subject.APIKey
	case IP:
		p.IP = req.Subject.IP
	case Route:
		p.Value = route
	case Method:
		p.Value = req.Method
	default:
		p.Value = req.Attributes[string(dimension)]
	}
	return p
}

// storeErr returns the first charge's error.
func (s *scratch) storeErr() error {
	for i := range s.charges {
		if err := s.charges[i].State.Err; err != nil {
			return err
		}
	}
	return nil
}

// fold makes the decision of the charges' states. Shadow limits are reported and refuse nothing.
func (s *scratch) fold(d *Decision) {
	d.Allowed = true
	for i := range s.charges {
		c, rule := &s.charges[i], s.owners[i].Rule
		state := &c.State
		d.add(Result{
			Rule: rule, Limit: c.Limit, Allowed: state.Allowed, Mode: state.Mode,
			Remaining: state.Remaining, ResetAfter: state.ResetAfter, RetryAfter: state.RetryAfter,
			cost: c.Cost, route: s.owners[i].Route, receipt: state.Receipt,
		})
		d.Mode = max(d.Mode, state.Mode)
		if c.Shadow {
			continue
		}
		d.Delay = max(d.Delay, state.Delay)
		if !state.Allowed {
			d.Allowed = false
			d.RetryAfter = max(d.RetryAfter, state.RetryAfter, rule.Response.RetryAfter)
		}
	}
	if !d.Allowed {
		d.Delay = 0
	}
}
