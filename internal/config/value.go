package config

import (
	"encoding"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// value puts one TOML value into a field and keeps its origin.
func (l *loader) value(dst reflect.Value, src any, path string) {
	origin := l.place(path)
	l.origins[path] = origin
	switch shapeOf(dst.Type()) {
	case table:
		if doc, ok := src.(map[string]any); ok {
			l.table(dst, doc, path)
			return
		}
	case tables, list:
		if all, ok := src.([]any); ok {
			out := reflect.MakeSlice(dst.Type(), len(all), len(all))
			for i, v := range all {
				l.value(out.Index(i), v, indexed(path, i))
			}
			dst.Set(out)
			return
		}
	case dictionary:
		if doc, ok := src.(map[string]any); ok {
			l.dictionary(dst, doc, path)
			return
		}
	case single:
		if problem, hint := setSingle(dst, src); problem != "" {
			l.fault(Fault{Origin: origin, Field: path, Problem: problem, Hint: hint})
		}
		return
	}
	l.fault(Fault{Origin: origin, Field: path, Problem: "is " + kindOf(src) + ", but should be " + wanted(dst.Type())})
}

func (l *loader) dictionary(dst reflect.Value, doc map[string]any, path string) {
	out := reflect.MakeMapWithSize(dst.Type(), len(doc))
	for key, v := range doc {
		at := joinKey(path, key)
		item := reflect.New(dst.Type().Elem()).Elem()
		if problem, hint := setSingle(item, v); problem != "" {
			l.fault(Fault{Origin: l.place(at), Field: at, Problem: problem, Hint: hint})
		}
		out.SetMapIndex(reflect.ValueOf(key), item)
	}
	dst.Set(out)
}

// setSingle sets a text, number, boolean or what is written as text. It returns what is wrong, or "".
func setSingle(dst reflect.Value, src any) (problem, hint string) {
	if dst.Kind() == reflect.Pointer {
		dst.Set(reflect.New(dst.Type().Elem()))
		dst = dst.Elem()
	}
	mismatch := "is " + kindOf(src) + ", but should be " + wanted(dst.Type())
	if u, ok := dst.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if t, isTime := src.(time.Time); isTime && dst.Type() == reflect.TypeFor[time.Time]() {
			dst.Set(reflect.ValueOf(t))
			return "", ""
		}
		text, ok := src.(string)
		if !ok {
			return mismatch, ""
		}
		return setText(dst, u, text)
	}
	switch v := src.(type) {
	case string:
		if dst.Kind() == reflect.String {
			dst.SetString(v)
			return "", ""
		}
	case bool:
		if dst.Kind() == reflect.Bool {
			dst.SetBool(v)
			return "", ""
		}
	case int64:
		if dst.CanInt() {
			dst.SetInt(v)
			return "", ""
		}
	}
	return mismatch, ""
}

// setText reads what has a form of its own, and words its faults for operators.
func setText(dst reflect.Value, u encoding.TextUnmarshaler, text string) (problem, hint string) {
	err := u.UnmarshalText([]byte(text))
	switch v := dst.Addr().Interface().(type) {
	case *netip.Prefix:
		if err == nil && *v == v.Masked() {
			return "", ""
		}
		problem = fmt.Sprintf("%q is not a network", text)
		if err == nil {
			return problem, fmt.Sprintf("did you mean %q?", v.Masked())
		}
		if addr, bad := netip.ParseAddr(text); bad == nil && addr.Zone() == "" {
			return problem, fmt.Sprintf("did you mean \"%s/%d\"?", addr, addr.BitLen())
		}
		return problem, `write it as "10.0.0.0/8" or "2001:db8::/32"`
	case *time.Time:
		if err != nil {
			return fmt.Sprintf("%q is not a time", text), "write it as 2026-01-31T00:00:00Z"
		}
	default:
		if err != nil {
			return err.Error(), ""
		}
	}
	return "", ""
}

// kindOf names what a TOML value is.
func kindOf(src any) string {
	switch src.(type) {
	case string:
		return "text"
	case bool:
		return "a boolean"
	case int64:
		return "a whole number"
	case float64:
		return "a number with a fraction"
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	case time.Time:
		return "a time"
	case toml.LocalDateTime, toml.LocalDate, toml.LocalTime:
		return "a time without a zone"
	default:
		return "something else"
	}
}

// wanted names what a field takes, with an example where the kind alone leaves doubts.
func wanted(t reflect.Type) string {
	switch shapeOf(t) {
	case table:
		return "a table"
	case tables:
		return "a list of tables"
	case list:
		return "a list, such as [\"a\", \"b\"]"
	case dictionary:
		return "a table of texts, such as {name = \"value\"}"
	case single:
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "a time with its zone, such as 2026-01-31T00:00:00Z"
	case t == reflect.TypeFor[netip.Prefix]():
		return "a network, such as \"10.0.0.0/8\""
	case strings.HasSuffix(t.Name(), "Duration"):
		return "a duration in quotes, such as \"500ms\""
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.String:
		return "text in quotes"
	default:
		return "a whole number"
	}
}
