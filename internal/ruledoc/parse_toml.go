package ruledoc

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// The bounds of a file beyond its size. TOML's parser keeps a record for every value of a line, and its decoder compares every
// name with all others of its table; aliases of YAML make nine lines stand for a billion values. Without bounds a small
// file could take gigabytes or hours.
const (
	maxValues = 1_000_000
	maxDots   = 100    // parts of a name, such as a.b.c
	maxFields = 10_000 // names in one table
)

// parseTOML makes a tree of a TOML file: first the parser gives it with its places, then the decoder, which does not tell
// places, checks what the parser does not, such as tables that are defined twice.
func parseTOML(s *source) (*node, *Fault) {
	if at, err := boundTOML(s.data); err != nil {
		f := s.fault(s.place(at), err)
		return nil, &f
	}
	t := tomlTree{source: s, root: &node{at: place{1, 1}, value: &table{}}}
	t.parser.Reset(s.data)
	t.build()
	if t.fault == nil {
		var nothing struct{}
		if err := toml.Unmarshal(s.data, &nothing); err != nil {
			t.fail(place{}, "%s", strings.TrimPrefix(err.Error(), "toml: "))
			if decode := (*toml.DecodeError)(nil); errors.As(err, &decode) {
				t.at.line, t.at.column = decode.Position()
			}
		}
	}
	if t.fault != nil {
		f := s.fault(t.at, fmt.Errorf("not TOML: %w", t.fault))
		return nil, &f
	}
	return t.root, nil
}

// boundTOML looks at the bytes alone; what stands in texts counts, too, which the bounds leave room for.
func boundTOML(data []byte) (offset int, err error) {
	values, dots := 0, 0
	for i, c := range data {
		switch c {
		case '.':
			dots++
		case ',', '=', '\n', '[', ']', '{', '}', '#':
			values++
			dots = 0
		}
		if values > maxValues {
			return i, fmt.Errorf("more than %d values: split the file", maxValues)
		}
		if dots > maxDots {
			return i, fmt.Errorf("a name, or a piece of a text, with more than %d dots: shorten it", maxDots)
		}
	}
	return 0, nil
}

// tomlTree is a tree being built. It keeps the first fault, after which what it builds is of no use.
type tomlTree struct {
	source *source
	parser unstable.Parser
	root   *node
	fault  error
	at     place
}

func (t *tomlTree) fail(at place, format string, args ...any) {
	if t.fault == nil {
		t.fault, t.at = fmt.Errorf(format, args...), at
	}
}

func (t *tomlTree) build() {
	current := t.root.value.(*table)
	for t.fault == nil && t.parser.NextExpression() {
		switch e := t.parser.Expression(); e.Kind {
		case unstable.KeyValue:
			t.keyValue(current, e)
		case unstable.Table, unstable.ArrayTable:
			current = t.header(e)
		}
	}
	err := t.parser.Error()
	if syntax := (*unstable.ParserError)(nil); errors.As(err, &syntax) {
		t.fail(t.source.place(int(t.parser.Range(syntax.Highlight).Offset)), "%s", syntax.Message)
	} else if err != nil {
		t.fail(place{}, "%w", err)
	}
}

// header goes to the table of a [header] or makes a new one for a [[header]].
func (t *tomlTree) header(e *unstable.Node) *table {
	current := t.root.value.(*table)
	for key := e.Key(); key.Next(); {
		name, at := t.key(key.Node())
		if e.Kind != unstable.ArrayTable || !key.IsLast() {
			current = t.enter(current, name, at)
			continue
		}
		entry := &table{}
		f := current.find(name)
		if f == nil {
			t.add(current, name, at, &node{at, list{}})
			f = current.find(name)
		}
		if entries, isList := f.value.value.(list); isList {
			f.value.value = append(entries, &node{at, entry})
		} else {
			t.fail(at, "%q is no list, so no entry can be added to it", shorten(name))
		}
		current = entry
	}
	return current
}

// enter returns the named table within another, which it makes when it is not there; of a list of tables, the last.
func (t *tomlTree) enter(within *table, name string, at place) *table {
	f := within.find(name)
	if f == nil {
		made := &table{}
		t.add(within, name, at, &node{at, made})
		return made
	}
	value := f.value.value
	if entries, isList := value.(list); isList && len(entries) > 0 {
		value = entries[len(entries)-1].value
	}
	if found, isTable := value.(*table); isTable {
		return found
	}
	t.fail(at, "%q is no table", shorten(name))
	return &table{}
}

func (t *tomlTree) keyValue(within *table, e *unstable.Node) {
	for key := e.Key(); key.Next(); {
		name, at := t.key(key.Node())
		if !key.IsLast() {
			within = t.enter(within, name, at)
			continue
		}
		if within.find(name) != nil {
			t.fail(at, "%q is there twice", shorten(name))
			return
		}
		t.add(within, name, at, t.value(e.Value(), at))
	}
}

func (t *tomlTree) add(to *table, name string, at place, value *node) {
	if len(to.fields) >= maxFields {
		t.fail(at, "more than %d names in one table", maxFields)
	}
	to.add(name, at, value)
}

func (t *tomlTree) key(n *unstable.Node) (string, place) {
	return string(n.Data), t.source.place(int(n.Raw.Offset))
}

// value makes a node of a value. An array has no place of its own, and takes that of its key.
func (t *tomlTree) value(e *unstable.Node, key place) *node {
	at := key
	if e.Raw.Length > 0 {
		at = t.source.place(int(e.Raw.Offset))
	}
	switch e.Kind {
	case unstable.Array:
		items := list{}
		for child := e.Children(); child.Next(); {
			items = append(items, t.value(child.Node(), key))
		}
		return &node{at, items}
	case unstable.InlineTable:
		inline := &table{}
		for child := e.Children(); child.Next(); {
			t.keyValue(inline, child.Node())
		}
		return &node{at, inline}
	}
	return &node{at, tomlScalar(e.Kind, string(e.Data))}
}

func tomlScalar(kind unstable.Kind, text string) any {
	switch kind {
	case unstable.String:
		return text
	case unstable.Bool:
		return text == "true"
	case unstable.Integer:
		return wholeNumber(text)
	case unstable.Float:
		f, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
		if err != nil {
			return fmt.Errorf("%s, which is not a number that can be read", shorten(text))
		}
		return f
	case unstable.DateTime:
		return moment(text)
	default:
		return fmt.Errorf("%s, a time without a zone", shorten(text))
	}
}

// wholeNumber reads an integer of TOML or YAML, an int64 or an error. Leading zeros are octal to some readers and
// decimal to others.
func wholeNumber(text string) any {
	digits := strings.TrimLeft(text, "+-")
	base := 10
	if len(digits) > 1 && digits[0] == '0' {
		if strings.IndexByte("xob", digits[1]) < 0 {
			return fmt.Errorf("%s, a number with leading zeros", shorten(text))
		}
		base = 0
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), base, 64)
	if err != nil {
		return fmt.Errorf("%s, a number beyond what can be counted", shorten(text))
	}
	return n
}

// moment reads a time with its zone. A space or a small letter may stand for the T.
func moment(text string) any {
	if len(text) > 10 && text[10] != 'T' {
		text = text[:10] + "T" + text[11:]
	}
	when, err := time.Parse(time.RFC3339Nano, strings.ToUpper(text))
	if err != nil {
		return fmt.Errorf("%s, which is no time: write it as 2026-12-31T23:59:59Z", shorten(text))
	}
	return when
}
