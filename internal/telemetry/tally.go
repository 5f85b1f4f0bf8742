package telemetry

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/sluicehq/sluice"
)

// tally counts what was decided without the store, by rule and mode.
type tally map[tallied]int64

type tallied struct {
	seriesName
	mode sluice.Mode
}

func newTally() tally { return tally{} }

// takeWithout returns what was counted since it was last asked.
func (m *Metrics) takeWithout() tally {
	t := newTally()
	set := m.series.Load()
	take := func(s *series) {
		for mode := range s.without {
			if n := s.without[mode].Swap(0); n > 0 {
				t[tallied{seriesName{s.namespace, s.rule}, sluice.Mode(mode)}] += n
			}
		}
	}
	for _, s := range set.byName {
		take(s)
	}
	take(set.other)
	return t
}

func (t tally) add(more tally) {
	for what, n := range more {
		t[what] += n
	}
}

// talliedRules is how many rules a log line names. More make lines that nobody reads.
const talliedRules = 10

// attrs tells the sums by mode, and the rules concerned most.
func (t tally) attrs() []slog.Attr {
	var byMode [modes]int64
	for what, n := range t {
		byMode[what.mode] += n
	}
	var attrs []slog.Attr
	for mode, n := range byMode {
		if n > 0 {
			attrs = append(attrs, slog.Int64(sluice.Mode(mode).String(), n))
		}
	}
	most := slices.SortedFunc(maps.Keys(t), func(a, b tallied) int {
		return cmp.Or(cmp.Compare(t[b], t[a]), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.rule, b.rule), cmp.Compare(a.mode, b.mode))
	})
	var rules []string
	for i, what := range most {
		if i == talliedRules {
			rules = append(rules, fmt.Sprintf("and %d more", len(most)-i))
			break
		}
		rules = append(rules, fmt.Sprintf("%s/%s %s: %d", what.namespace, what.rule, what.mode, t[what]))
	}
	if len(rules) > 0 {
		attrs = append(attrs, slog.Any("rules", rules))
	}
	return attrs
}
