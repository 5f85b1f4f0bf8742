package envoyimport

import (
	"fmt"
	"strings"

	"github.com/sluicehq/sluice/internal/envoyrls/pattern"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

// walk goes through the descriptors of a domain, outermost first, and makes a rule of each that ends somewhere.
type walk struct {
	*importer
	domain string
	found  []found
}

// found is the rule of one descriptor, and what others refer to it by.
type found struct {
	rule      ruledoc.Rule
	pattern   string
	name      string // of its rate limit; "" for none
	replaces  []string
	unlimited bool
}

// step is a level on the way to a descriptor.
type step struct {
	pattern.Entry
	shared bool // all values count together
}

// level goes through descriptors that stand side by side.
func (w *walk) level(above []step, siblings []filed) {
	seen := map[pattern.Entry]bool{}
	var wildcards []pattern.Entry
	for _, d := range siblings {
		here := append(above[:len(above):len(above)], step{entryOf(d.descriptor), bool(d.ShareThreshold)})
		e := here[len(above)].Entry
		switch {
		case d.Key == "":
			w.fault(d.file, above, "a descriptor below it has no key")
			continue
		case seen[e]:
			w.fault(d.file, here, "the same key and value are there twice")
			continue
		case len(here) > pattern.MaxDepth:
			w.fault(d.file, above, fmt.Sprintf("is %d levels deep: the most is %d", len(here), pattern.MaxDepth))
			continue
		}
		seen[e] = true
		if e.Kind == pattern.Prefix {
			if earlier, never := hiddenBy(wildcards, e); never {
				w.note(d.file, here, "left out: never matched, because "+pattern.Pattern{earlier}.String()+" stands before it and takes all its values")
				continue
			}
			wildcards = append(wildcards, e)
		}
		w.noteJoins(d.file, here, siblings)
		w.descriptor(here, d)
	}
}

// entryOf returns the level that a descriptor is. A star that ends the value stands for any ending.
func entryOf(d descriptor) pattern.Entry {
	key, value := string(d.Key), string(d.Value)
	if value == "" {
		return pattern.Entry{Key: key, Kind: pattern.Any}
	}
	if begin, wildcard := strings.CutSuffix(value, "*"); wildcard {
		return pattern.Entry{Key: key, Kind: pattern.Prefix, Value: begin}
	}
	return pattern.Entry{Key: key, Kind: pattern.Exact, Value: value}
}

// hiddenBy tells whether an earlier wildcard takes all values of a later one: the reference service asks them in the order
// of the file, while ours asks the longest first.
func hiddenBy(earlier []pattern.Entry, e pattern.Entry) (pattern.Entry, bool) {
	for _, w := range earlier {
		if w.Key == e.Key && strings.HasPrefix(e.Value, w.Value) {
			return w, true
		}
	}
	return pattern.Entry{}, false
}

// descriptor makes the rule of a descriptor and goes on to those below.
func (w *walk) descriptor(here []step, d filed) {
	e := here[len(here)-1].Entry
	if e.Kind == pattern.Any && strings.HasSuffix(e.Key, "*") {
		w.note(d.file, here, "left out with all below it: a star that ends a key; keys are compared whole")
		return
	}
	if strings.Contains(strings.TrimSuffix(string(d.Value), "*"), "*") {
		w.note(d.file, here, "a star within a value stands for itself; the reference service takes it for a wildcard since 2026")
	}
	if d.ShareThreshold && e.Kind != pattern.Prefix {
		w.fault(d.file, here, "share_threshold is only for values that end with a star")
	}
	w.noteIgnored(here, d)
	if d.RateLimit != nil || len(d.Descriptors) == 0 {
		w.rule(here, d)
	}
	below := make([]filed, len(d.Descriptors))
	for i := range below {
		below[i] = filed{d.file, d.Descriptors[i]}
	}
	w.level(here, below)
}

// noteIgnored names fields that say nothing about verdicts and have nowhere to go.
func (w *walk) noteIgnored(here []step, d filed) {
	if d.DetailedMetric {
		w.note(d.file, here, "detailed_metric is left out: metrics are by rule, never by value")
	}
	if d.ValueToMetric {
		w.note(d.file, here, "value_to_metric is left out: metrics are by rule, never by value")
	}
	if d.Metadata != nil {
		w.note(d.file, here, "metadata is left out: answers carry none of a rule's")
	}
}

// noteJoins tells of keys that the reference service can confuse. It joins key and value by an underscore before it compares,
// so its "user" with the value "agent*" also takes the key "user_agent". We compare keys and values apart.
func (w *walk) noteJoins(file string, here []step, siblings []filed) {
	e := here[len(here)-1].Entry
	joined := e.Key
	if e.Kind != pattern.Any {
		joined += "_" + e.Value
	}
	for _, s := range siblings {
		other := string(s.Key) + "_"
		if string(s.Key) == e.Key || s.Key == "" {
			continue
		}
		if strings.HasPrefix(joined, other) || e.Kind == pattern.Prefix && strings.HasPrefix(other, joined) {
			w.note(file, here, fmt.Sprintf("the reference service may take an entry of the key %q for it; ours compares keys whole", s.Key))
			return
		}
	}
}

func (w *walk) note(file string, at []step, reason string) {
	w.notes = append(w.notes, Note{File: file, Path: w.path(at), Reason: reason})
}

func (w *walk) fault(file string, at []step, problem string) {
	w.faults = append(w.faults, fmt.Errorf("%s: %s: %s", file, w.path(at), problem))
}

func (w *walk) path(at []step) string {
	if len(at) == 0 {
		return "domain " + w.domain
	}
	return "domain " + w.domain + ": " + textOf(at)
}

// textOf is the written form of the way to a descriptor.
func textOf(steps []step) string {
	p := make(pattern.Pattern, len(steps))
	for i := range steps {
		p[i] = steps[i].Entry
	}
	return p.String()
}
