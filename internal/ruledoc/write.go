package ruledoc

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// WriteTOML writes the document as a person would: an entry below the other, fields in the order of the reference, match and
// limits in one line where they fit. Decode reads the same document from it.
func (d Document) WriteTOML(w io.Writer) error {
	t := &tomlWriter{columns: map[reflect.Type][]column{}}
	v := reflect.ValueOf(d)
	for i := range v.NumField() {
		section, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("toml"), ",")
		for j := range v.Field(i).Len() {
			t.entry(section, v.Field(i).Index(j))
		}
	}
	_, err := io.WriteString(w, t.text.String())
	return err
}

// WriteTOML writes the rule alone, for programs that put comments between rules.
func (r Rule) WriteTOML(w io.Writer) error { return Document{Rules: []Rule{r}}.WriteTOML(w) }

// WriteYAML writes the document as YAML. Decode reads the same document from it.
func (d Document) WriteYAML(w io.Writer) error {
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	if err := e.Encode(d); err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	return e.Close()
}

// tomlWriter writes entries by the tags of their fields.
type tomlWriter struct {
	text    strings.Builder
	columns map[reflect.Type][]column
}

// column is a field of a struct and its name in TOML.
type column struct {
	name  string
	index []int
}

func (t *tomlWriter) entry(section string, v reflect.Value) {
	if t.text.Len() > 0 {
		t.text.WriteByte('\n')
	}
	t.text.WriteString("[[" + section + "]]\n")
	for name, value := range t.fields(v) {
		t.text.WriteString(name + " = ")
		t.value(value, len(name)+len(" = "))
		t.text.WriteByte('\n')
	}
}

// fields yields the fields to write: all but the zero ones, which read the same when they are absent.
func (t *tomlWriter) fields(v reflect.Value) func(yield func(string, reflect.Value) bool) {
	columns, known := t.columns[v.Type()]
	if !known {
		for _, f := range reflect.VisibleFields(v.Type()) {
			if name, _, _ := strings.Cut(f.Tag.Get("toml"), ","); !f.Anonymous {
				columns = append(columns, column{name, f.Index})
			}
		}
		t.columns[v.Type()] = columns
	}
	return func(yield func(string, reflect.Value) bool) {
		for _, c := range columns {
			if value := v.FieldByIndex(c.index); !t.isEmpty(value) && !yield(c.name, value) {
				return
			}
		}
	}
}

func (t *tomlWriter) isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Struct:
		if when, ok := v.Interface().(time.Time); ok {
			return when.IsZero()
		}
		for range t.fields(v) {
			return false
		}
		return true
	}
	return v.IsZero()
}

// lineLength is how long a line may get before lists are written one entry per line.
const lineLength = 120

func (t *tomlWriter) value(v reflect.Value, indent int) {
	inline := t.inline(v)
	if v.Kind() != reflect.Slice || v.Len() < 2 || indent+len(inline) <= lineLength {
		t.text.WriteString(inline)
		return
	}
	t.text.WriteString("[\n")
	for i := range v.Len() {
		t.text.WriteString("  " + t.inline(v.Index(i)) + ",\n")
	}
	t.text.WriteByte(']')
}

// inline writes a value in one line.
func (t *tomlWriter) inline(v reflect.Value) string {
	switch value := v.Interface().(type) {
	case Duration:
		return quote(value.String())
	case time.Time:
		return value.Format(time.RFC3339Nano)
	}
	var parts []string
	switch v.Kind() {
	case reflect.Pointer:
		return t.inline(v.Elem())
	case reflect.String:
		return quote(v.String())
	case reflect.Slice:
		for i := range v.Len() {
			parts = append(parts, t.inline(v.Index(i)))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case reflect.Map:
		for key, value := range v.Seq2() {
			parts = append(parts, bareOrQuoted(key.String())+" = "+t.inline(value))
		}
		slices.Sort(parts)
	case reflect.Struct:
		for name, value := range t.fields(v) {
			parts = append(parts, name+" = "+t.inline(value))
		}
	default:
		return fmt.Sprint(v.Interface())
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

func bareOrQuoted(key string) string {
	bare := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
	}
	if key != "" && !strings.ContainsFunc(key, func(r rune) bool { return !bare(r) }) {
		return key
	}
	return quote(key)
}

// quote writes a basic string: every character stands for itself but quotes, backslashes and control characters.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f:
			b.WriteString(`\u` + fmt.Sprintf("%04X", r))
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
