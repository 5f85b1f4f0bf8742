package ruledoc

import (
	"bytes"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/sluicehq/sluice"
)

// Format is how a text is written.
type Format uint8

// The formats.
const (
	TOML Format = iota
	YAML
	JSON
)

// String returns the format's name, which is also that of its field tags.
func (f Format) String() string { return [...]string{"toml", "yaml", "json"}[f] }

// FormatOf tells the format by a file's name; false when the name tells none.
func FormatOf(name string) (Format, bool) {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".toml":
		return TOML, true
	case ".yaml", ".yml":
		return YAML, true
	case ".json":
		return JSON, true
	}
	return 0, false
}

// MaxFileSize is the most that Decode reads, some twenty thousand rules. While it is parsed a file takes up to a hundred
// times its size in memory, which a node that is serving must have to spare.
const MaxFileSize = 4 << 20

// Parsed is what one text holds, and where each entry stands in it.
type Parsed struct {
	// Document has the entries that can be used. It must not be changed.
	Document Document

	source *source
	places [kinds][]*node // of the entries of Document; nil where the text is not known
	// leftOut are the rules that could not be read and yet have a name.
	leftOut []RuleName
}

// RuleName identifies a rule.
type RuleName struct{ Namespace, Name string }

// Decode reads a text strictly and reports every fault at once, as far as its syntax can be followed. An entry with a fault is
// left out alone. When the text as a whole cannot be understood (its syntax is broken, or it has a section with an unknown
// name) Parsed is nil. Decode never panics and its work is bounded by the text's size. The name stands in the faults.
func Decode(name string, format Format, data []byte) (*Parsed, []Fault) {
	return decode(name, format, data, false)
}

// DecodeEmbedded reads the rules of a TOML file that holds other things, too, such as a node's configuration. Only the
// sections of a Document are looked at, and no other line is quoted: it may hold a secret.
func DecodeEmbedded(name string, data []byte) (*Parsed, []Fault) {
	p, faults := decode(name, TOML, data, true)
	for i := range faults {
		if faults[i].Entry == "" {
			faults[i].Source = ""
		}
	}
	return p, faults
}

// FromDocument takes a document that was not read from a text. Faulty entries are left out and reported, without places.
func FromDocument(name string, doc Document) (*Parsed, []Fault) {
	d := newDecoder(newSource(name, nil), TOML)
	keepAll(d, doc.Rules, &d.parsed.Document.Rules, RuleEntry)
	keepAll(d, doc.Tiers, &d.parsed.Document.Tiers, TierEntry)
	keepAll(d, doc.Overrides, &d.parsed.Document.Overrides, OverrideEntry)
	keepAll(d, doc.Exemptions, &d.parsed.Document.Exemptions, ExemptionEntry)
	keepAll(d, doc.Blocks, &d.parsed.Document.Blocks, BlockEntry)
	return d.parsed, d.faults
}

func keepAll[T entry](d *decoder, from []T, to *[]T, kind Kind) {
	for _, e := range from {
		keep(d, e, nil, nil, to, kind)
	}
}

func decode(name string, format Format, data []byte, embedded bool) (*Parsed, []Fault) {
	if len(data) > MaxFileSize {
		return nil, []Fault{{File: name, Err: fmt.Errorf("is %d bytes long: the most is %d; split it, or match by tier instead of listing users", len(data), MaxFileSize)}}
	}
	s := newSource(name, bytes.TrimPrefix(data, []byte("\ufeff")))
	if !utf8.Valid(s.data) {
		return nil, []Fault{s.fault(s.place(firstInvalid(s.data)), fmt.Errorf("is not UTF-8: save it in that encoding"))}
	}
	root, fault := [...]func(*source) (*node, *Fault){parseTOML, parseYAML, parseJSON}[format](s)
	if fault != nil {
		return nil, []Fault{*fault}
	}
	d := newDecoder(s, format)
	d.document(root, embedded)
	if d.binder.full() {
		d.unusable, d.faults = true, []Fault{s.fault(place{}, errTooMany)}
	}
	if d.unusable {
		return nil, d.faults
	}
	return d.parsed, d.faults
}

func firstInvalid(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
	return len(data)
}

// decoder makes a Parsed of a tree.
type decoder struct {
	parsed   *Parsed
	binder   *binder
	faults   []Fault
	unusable bool
}

func newDecoder(s *source, format Format) *decoder {
	return &decoder{parsed: &Parsed{source: s}, binder: newBinder(format.String())}
}

func (d *decoder) document(root *node, embedded bool) {
	t, ok := root.value.(*table)
	if !ok {
		d.refuse(root.at, fmt.Errorf("want a table with the sections %s, found %s", strings.Join(d.sections(), ", "), root.describe()))
		return
	}
	for i := range t.fields {
		f := &t.fields[i]
		switch kind, known := d.kindOf(f.name); {
		case known:
			d.section(kind, f)
		case !embedded:
			d.refuse(f.at, unknown("section", f.name, d.sections()))
		}
	}
}

// sections are the names that stand at the top of a file.
func (d *decoder) sections() []string { return d.binder.planOf(reflect.TypeFor[Document]()).names }

func (d *decoder) kindOf(section string) (Kind, bool) {
	for i, name := range d.sections() {
		if name == section {
			return Kind(i), true
		}
	}
	return 0, false
}

// refuse reports a fault of the text as a whole.
func (d *decoder) refuse(at place, err error) {
	d.unusable = true
	d.faults = append(d.faults, d.parsed.source.fault(at, err))
}

func (d *decoder) section(kind Kind, f *field) {
	entries, ok := f.value.value.(list)
	switch {
	case f.value.value == nil: // "rules:" with everything below it commented out
		return
	case !ok && d.binder.tag == TOML.String():
		d.refuse(f.at, fmt.Errorf("want a list, found %s: write [[%s]] above each entry", f.value.describe(), f.name))
		return
	case !ok:
		d.refuse(f.at, fmt.Errorf("%s: want a list, found %s", f.name, f.value.describe()))
		return
	}
	doc := &d.parsed.Document
	for _, n := range entries {
		switch kind {
		case RuleEntry:
			read(d, n, &doc.Rules, kind)
		case TierEntry:
			read(d, n, &doc.Tiers, kind)
		case OverrideEntry:
			read(d, n, &doc.Overrides, kind)
		case ExemptionEntry:
			read(d, n, &doc.Exemptions, kind)
		case BlockEntry:
			read(d, n, &doc.Blocks, kind)
		}
	}
}

// read reads one entry and keeps it when it has no fault.
func read[T entry](d *decoder, n *node, to *[]T, kind Kind) {
	var e T
	d.binder.found = nil
	if !d.binder.full() {
		d.binder.bind(n, reflect.ValueOf(&e).Elem())
		keep(d, e, n, d.binder.found, to, kind)
	}
}

// keep keeps an entry when neither the binder nor the entry itself found a fault.
func keep[T entry](d *decoder, e T, n *node, found []fieldAt, to *[]T, kind Kind) {
	if len(found) == 0 { // what was misread would be reported once more, as missing
		for _, f := range e.check() {
			at := place{}
			if n != nil {
				at = n.locate(f.field)
			}
			found = append(found, fieldAt{at, f.field, f.err})
		}
	}
	if len(found) == 0 {
		*to = append(*to, e)
		d.parsed.places[kind] = append(d.parsed.places[kind], n)
		return
	}
	for _, f := range found {
		fault := d.parsed.source.fault(f.at, f.err)
		fault.Entry, fault.Field = e.title(), f.field
		d.faults = append(d.faults, fault)
	}
	if r, isRule := any(e).(Rule); isRule && r.Name != "" {
		d.parsed.leftOut = append(d.parsed.leftOut, nameOf(&r))
	}
}

func nameOf(r *Rule) RuleName {
	name := RuleName{r.Namespace, r.Name}
	if name.Namespace == "" {
		name.Namespace = sluice.DefaultNamespace
	}
	return name
}

// LeaveOut notes rules that were written and could not be read before they came here, so that Merged.Compile takes them in their last good
// form like those that Decode itself leaves out.
func (p *Parsed) LeaveOut(names ...RuleName) {
	for _, name := range names {
		p.leftOut = append(p.leftOut, nameOf(&Rule{Namespace: name.Namespace, Name: name.Name}))
	}
}
