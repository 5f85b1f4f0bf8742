package config

import (
	"encoding"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// PrintOptions say what Print writes. The zero value writes what was set, as TOML.
type PrintOptions struct {
	// Effective writes the defaults as well.
	Effective bool
	// JSON writes JSON in place of TOML.
	JSON bool
}

// Print writes the configuration, each value with its origin, without secrets.
func (l *Loaded) Print(w io.Writer, opts PrintOptions) error {
	if opts.JSON {
		return l.printJSON(w, opts.Effective)
	}
	p := printer{loaded: l, effective: opts.Effective}
	if l.Path != "" {
		fmt.Fprintf(&p.out, "# %s\n", l.Path)
	}
	p.table(reflect.ValueOf(&l.Config).Elem(), "", "", "")
	_, err := io.WriteString(w, strings.TrimLeft(p.out.String(), "\n"))
	return err
}

// printedValue is an element of the JSON form. It is read by programs: names are added, never changed.
type printedValue struct {
	Field  string `json:"field"`
	Value  any    `json:"value"`
	Origin string `json:"origin"`
}

func (l *Loaded) printJSON(w io.Writer, effective bool) error {
	doc := struct {
		File   string         `json:"file,omitempty"`
		Values []printedValue `json:"values"`
	}{File: l.Path, Values: []printedValue{}}
	visit(reflect.ValueOf(&l.Config).Elem(), "", "", func(f leaf) {
		origin := l.Origins[f.path]
		if l.skip(f.member, f.value, origin, effective) {
			return
		}
		doc.Values = append(doc.Values, printedValue{f.path, shown(f.name, f.value).Interface(), origin.String()})
	})
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(doc)
}

// skip tells that a value is left out: an optional one that is not set, or a default when only what was set is asked for.
func (l *Loaded) skip(m member, v reflect.Value, origin Origin, effective bool) bool {
	return m.optional && v.IsZero() || !effective && origin.Kind == FromDefault
}

// printer writes a Config as TOML.
type printer struct {
	loaded    *Loaded
	effective bool
	out       strings.Builder
}

// table writes a table: first its values, because TOML takes what follows a header as the header's, then the tables in it.
func (p *printer) table(v reflect.Value, header, path, name string) {
	ms := members(v.Type())
	var lines strings.Builder
	for _, m := range ms {
		value, at := v.FieldByIndex(m.index), joinKey(path, m.name)
		if s := shapeOf(m.typ); s == table || s == tables {
			continue
		}
		origin := p.loaded.Origins[at]
		if p.loaded.skip(m, value, origin, p.effective) {
			continue
		}
		full := joinKey(name, m.name)
		fmt.Fprintf(&lines, "%-40s # %s\n", m.name+" = "+literal(shown(full, value)), origin.comment())
	}
	if lines.Len() > 0 || strings.HasPrefix(header, "[[") {
		if header != "" {
			fmt.Fprintf(&p.out, "\n%s\n", header)
		}
		p.out.WriteString(lines.String())
	}
	for _, m := range ms {
		value, at, full := v.FieldByIndex(m.index), joinKey(path, m.name), joinKey(name, m.name)
		switch shapeOf(m.typ) {
		case table:
			p.table(value, "["+full+"]", at, full)
		case tables:
			for i := range value.Len() {
				p.table(value.Index(i), "[["+full+"]]", indexed(at, i), full)
			}
		default:
		}
	}
}

// literal is a value in TOML.
func literal(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch t := v.Interface().(type) {
	case time.Time:
		return t.Format(time.RFC3339Nano)
	case encoding.TextMarshaler:
		text, err := t.MarshalText()
		if err != nil { // none of our types returns one
			return basicString(err.Error())
		}
		return basicString(string(text))
	}
	switch v.Kind() {
	case reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = literal(v.Index(i))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case reflect.Map:
		all := v.Interface().(map[string]string)
		parts := make([]string, 0, len(all))
		for _, k := range sortedKeys(all) {
			parts = append(parts, tomlKey(k)+" = "+basicString(all[k]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.String:
		return basicString(v.String())
	default:
		return strconv.FormatInt(v.Int(), 10)
	}
}

func tomlKey(key string) string {
	if key == "" || strings.ContainsFunc(key, notBare) {
		return basicString(key)
	}
	return key
}

// basicString is TOML's form in double quotes. Go's has escapes that TOML does not know.
func basicString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, "\\u%04X", r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
