package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing that is wrong with a configuration. It never holds a secret.
type Fault struct {
	Origin Origin
	// Field is the dotted name, such as "redis.url" or "gateway.route[1].upstream"; empty when no field is concerned.
	Field   string
	Problem string
	// Hint says what to do. May be empty.
	Hint string
}

// String is one line: where, what, why, and what to do.
func (f Fault) String() string {
	var b strings.Builder
	// A default can only be at fault together with something that was set, which the problem names.
	if f.Origin.Kind != FromDefault {
		b.WriteString(f.Origin.String())
		b.WriteString(": ")
	}
	if f.Field != "" {
		b.WriteString(f.Field)
		b.WriteString(": ")
	}
	b.WriteString(f.Problem)
	if f.Hint != "" {
		b.WriteString("; ")
		b.WriteString(f.Hint)
	}
	return b.String()
}

// Error is everything that is wrong with a configuration, at least one fault.
type Error struct {
	Faults []Fault
}

// Error lists the faults, one on each line.
func (e *Error) Error() string {
	if len(e.Faults) == 1 {
		return "configuration: " + e.Faults[0].String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "configuration has %d faults:", len(e.Faults))
	for _, f := range e.Faults {
		b.WriteString("\n  ")
		b.WriteString(f.String())
	}
	return b.String()
}

// sortFaults puts faults into the order in which somebody would mend them: down the file, then the environment, then
// the command line.
func sortFaults(faults []Fault) {
	rank := func(o Origin) int {
		if o.Kind == FromDefault {
			return int(FromFlag) + 1
		}
		return int(o.Kind)
	}
	slices.SortStableFunc(faults, func(a, b Fault) int {
		return cmp.Or(
			cmp.Compare(rank(a.Origin), rank(b.Origin)),
			cmp.Compare(a.Origin.Line, b.Origin.Line),
			cmp.Compare(a.Origin.Column, b.Origin.Column),
			cmp.Compare(a.Origin.Name, b.Origin.Name),
			cmp.Compare(a.Field, b.Field),
		)
	})
}

// didYouMean is a hint at the known name that is nearest to a mistyped one, or "" when none is near.
func didYouMean(name string, known []string) string {
	// A third of the letters may differ: more, and the hint names something unrelated.
	best, distance := "", max(2, len(name)/3)+1
	for _, k := range known {
		if d := editDistance(strings.ToLower(name), strings.ToLower(k), distance); d < distance {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", best)
}

// oneOf is a hint that lists what is allowed.
func oneOf(values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = fmt.Sprintf("%q", v)
	}
	return "want one of " + strings.Join(quoted, ", ")
}

// editDistance counts the letters to insert, delete, replace or swap with their neighbour, and stops caring at bound.
func editDistance(a, b string, bound int) int {
	if len(a)-len(b) >= bound || len(b)-len(a) >= bound {
		return bound
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
