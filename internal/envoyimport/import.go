// Package envoyimport turns configurations of envoyproxy/ratelimit, the reference service of Envoy's rate limit API, into
// rules, and names everything that it cannot carry over.
package envoyimport

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/envoyrls/pattern"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

// File is one file of a configuration.
type File struct {
	Name string
	Data []byte
}

// Options tune an import. The zero value works.
type Options struct {
	// Algorithm of the limits; no token bucket or log. Default fixed_window, which is what the reference service
	// counts by, so that verdicts stay the same.
	Algorithm string
}

// Note tells of something that means less, or something else, after the import.
type Note struct {
	File string
	// Path leads to the descriptor: its domain, and keys and values from the outermost.
	Path   string
	Reason string
}

// String returns the note as one line.
func (n Note) String() string { return n.File + ": " + n.Path + ": " + n.Reason }

// Import turns files into rules. Files of one domain are taken together. An error lists everything for which the reference
// service would refuse the files, or that cannot become a rule; then there is no document.
func Import(files []File, opts Options) (ruledoc.Document, []Note, error) {
	if opts.Algorithm == "" {
		opts.Algorithm = sluice.FixedWindow.String()
	}
	if opts.Algorithm != sluice.FixedWindow.String() && opts.Algorithm != sluice.SlidingWindow.String() {
		return ruledoc.Document{}, nil, fmt.Errorf("algorithm is %q: it must be fixed_window or sliding_window", opts.Algorithm)
	}
	im := importer{opts: opts}
	var domains []*domain
	for _, f := range files {
		r, err := read(f)
		if err != nil {
			im.faults = append(im.faults, err)
			continue
		}
		at := slices.IndexFunc(domains, func(d *domain) bool { return d.name == string(r.Domain) })
		if at < 0 {
			at = len(domains)
			domains = append(domains, &domain{name: string(r.Domain)})
		}
		for _, d := range r.Descriptors {
			domains[at].descriptors = append(domains[at].descriptors, filed{f.Name, d})
		}
	}
	var doc ruledoc.Document
	for _, d := range domains {
		doc.Rules = append(doc.Rules, im.domain(d)...)
	}
	im.compile(doc.Rules)
	if len(im.faults) > 0 {
		return ruledoc.Document{}, im.notes, errors.Join(im.faults...)
	}
	return doc, im.notes, nil
}

// importer gathers what is to say about an import.
type importer struct {
	opts   Options
	notes  []Note
	faults []error
}

// domain is all that the files say about one domain.
type domain struct {
	name        string
	descriptors []filed
}

// filed is a descriptor with the file it is from.
type filed struct {
	file string
	descriptor
}

// domain returns the rules of a domain.
func (im *importer) domain(d *domain) []ruledoc.Rule {
	w := walk{importer: im, domain: d.name}
	w.level(nil, d.descriptors)
	rules := make([]ruledoc.Rule, 0, len(w.found)+1)
	for i := range w.found {
		rules = append(rules, w.found[i].rule)
	}
	rules = append(rules, w.replacements()...)
	return append(rules, im.callersRule(d.name))
}

// callersRule counts by limits that callers bring, which the reference service does for every descriptor of a domain that
// it knows. The limit that it is written with is replaced by theirs.
func (im *importer) callersRule(namespace string) ruledoc.Rule {
	return ruledoc.Rule{
		Namespace: namespace, Name: "limits-of-callers", Layer: pattern.Limit, Label: "caller",
		Match:  ruledoc.Match{Attributes: map[string]string{pattern.Limit: pattern.CallersLimit}},
		Key:    []string{pattern.Entries},
		Limits: []ruledoc.Limit{{Algorithm: im.opts.Algorithm, Limit: 1, Window: ruledoc.Duration(unitWindows["minute"])}},
	}
}

// compile finds rules that would not load.
func (im *importer) compile(written []ruledoc.Rule) {
	rules := make([]sluice.Rule, len(written))
	for i, w := range written {
		rule, err := w.ToRule()
		if err != nil {
			im.faults = append(im.faults, fmt.Errorf("domain %q: rule %q: %w", w.Namespace, w.Name, err))
		}
		rules[i] = rule
	}
	for _, report := range sluice.Validate(rules) {
		if !report.Warning {
			im.faults = append(im.faults, report)
		}
	}
}
