package telemetry

import (
	"cmp"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice"
)

// outcome is what a decision came to, as the label says it.
type outcome uint8

const (
	outcomeAllowed outcome = iota
	outcomeDelayed
	outcomeRefused
	outcomeBlocked
	outcomeExempt
	outcomeDisabled
	outcomeNoRule
	outcomes
)

var outcomeNames = [outcomes]string{"allowed", "delayed", "refused", "blocked", "exempt", "disabled", "no_rule"}

func (o outcome) String() string { return outcomeNames[o] }

func outcomeOf(d *sluice.Decision) outcome {
	switch d.Cause {
	case sluice.NoRule:
		return outcomeNoRule
	case sluice.Disabled:
		return outcomeDisabled
	case sluice.Exempted:
		return outcomeExempt
	case sluice.BlockedByList, sluice.BlockedByRule:
		return outcomeBlocked
	}
	switch {
	case !d.Allowed:
		return outcomeRefused
	case d.Delay > 0:
		return outcomeDelayed
	}
	return outcomeAllowed
}

// result is what one rule said in a decision.
type result uint8

const (
	resultPassed result = iota
	resultRefused
	resultShadowRefused
	resultKinds
)

var resultNames = [resultKinds]string{"passed", "refused", "shadow_refused"}

func refusalOf(rule *sluice.Rule) result {
	if rule.Action == sluice.Shadow {
		return resultShadowRefused
	}
	return resultRefused
}

// modes is how many there are.
const modes = int(sluice.Closed) + 1

// series are the counters of one rule, or of what a namespace decided without one. A counter is made when it first
// counts, because most of the combinations never happen.
type series struct {
	metrics         *Metrics
	namespace, rule string
	decisions       [outcomes][modes]atomic.Pointer[prometheus.Counter]
	results         [resultKinds]atomic.Pointer[prometheus.Counter]
	without         [modes]atomic.Int64 // times it was without the store's answer since the last report, by its weakest mode

	mu   sync.Mutex
	gone bool // nothing is made any more; a decision that began before the rule went is counted nowhere
}

func (s *series) decided(o outcome, mode sluice.Mode) {
	at := &s.decisions[o][min(int(mode), modes-1)]
	if c := at.Load(); c != nil {
		(*c).Inc()
		return
	}
	s.first(at, func() prometheus.Counter {
		return s.metrics.decisions.WithLabelValues(s.namespace, s.rule, o.String(), mode.String())
	})
}

func (s *series) said(r result) {
	at := &s.results[r]
	if c := at.Load(); c != nil {
		(*c).Inc()
		return
	}
	s.first(at, func() prometheus.Counter {
		return s.metrics.results.WithLabelValues(s.namespace, s.rule, resultNames[r])
	})
}

// first makes a counter and counts one.
func (s *series) first(at *atomic.Pointer[prometheus.Counter], create func() prometheus.Counter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return
	}
	c := create()
	c.Inc()
	at.Store(&c)
}

// drop takes the series out of the metrics.
func (s *series) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	for o := range s.decisions {
		for mode := range s.decisions[o] {
			if s.decisions[o][mode].Load() != nil {
				s.metrics.decisions.DeleteLabelValues(s.namespace, s.rule, outcome(o).String(), sluice.Mode(mode).String())
			}
		}
	}
	for r := range s.results {
		if s.results[r].Load() != nil {
			s.metrics.results.DeleteLabelValues(s.namespace, s.rule, resultNames[r])
		}
	}
}

// seriesName tells series apart. The rule is empty for what a namespace decided without one.
type seriesName struct{ namespace, rule string }

// otherName labels what has no series of its own: rules beyond the bound, and namespaces that have no rules, which
// callers can invent.
const otherName = "_other"

// seriesSet is the series of one rule set. It is replaced whole, so that a decision finds its counters by the rule's pointer
// without a lock. Series whose names stay are carried over.
type seriesSet struct {
	byRule  map[*sluice.Rule]*series
	byName  map[seriesName]*series
	other   *series // never dropped
	maxSize int
}

func newSeriesSet(m *Metrics, maxRules int) *seriesSet {
	return &seriesSet{other: &series{metrics: m, namespace: otherName, rule: otherName}, maxSize: maxRules}
}

// of returns the series of a rule. One of an older rule set is found by its name.
func (s *seriesSet) of(rule *sluice.Rule) *series {
	if found := s.byRule[rule]; found != nil {
		return found
	}
	if found := s.byName[seriesName{rule.Namespace, rule.Name}]; found != nil {
		return found
	}
	return s.other
}

func (s *seriesSet) ofNamespace(namespace string) *series {
	if found := s.byName[seriesName{namespace: cmp.Or(namespace, sluice.DefaultNamespace)}]; found != nil {
		return found
	}
	return s.other
}

// replace returns the series of another rule set, and those that it no longer has.
func (s *seriesSet) replace(m *Metrics, rules *sluice.RuleSet) (next *seriesSet, dropped []*series) {
	next = &seriesSet{
		byRule: make(map[*sluice.Rule]*series, rules.Len()),
		byName: make(map[seriesName]*series, rules.Len()+1),
		other:  s.other, maxSize: s.maxSize,
	}
	keep := func(name seriesName) *series {
		at := next.byName[name]
		if at == nil {
			if at = s.byName[name]; at == nil {
				at = &series{metrics: m, namespace: name.namespace, rule: name.rule}
			}
			next.byName[name] = at
		}
		return at
	}
	keep(seriesName{namespace: sluice.DefaultNamespace})
	for rule := range rules.Rules() {
		if len(next.byRule) == next.maxSize {
			break
		}
		keep(seriesName{namespace: rule.Namespace})
		next.byRule[rule] = keep(seriesName{rule.Namespace, rule.Name})
	}
	for name, at := range s.byName {
		if next.byName[name] == nil {
			dropped = append(dropped, at)
		}
	}
	return next, dropped
}

// SetRules tells that a rule set is about to be in force, and how many faults were found while reading it. Rules that are
// gone lose their series.
func (m *Metrics) SetRules(rules *sluice.RuleSet, faults int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next, dropped := m.series.Load().replace(m, rules)
	m.series.Store(next)
	for _, s := range dropped {
		s.drop()
	}
	m.revision.Set(float64(rules.Revision()))
	m.loaded.Set(float64(rules.Len()))
	m.faults.Set(float64(faults))
	m.rulesLoadedAt.SetToCurrentTime()
}
