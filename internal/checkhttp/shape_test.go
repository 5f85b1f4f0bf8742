package checkhttp

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// TestShapes_AreThoseOfTheTypes keeps the grammar and the types together: a field in one only would be refused or accepted
// with the wrong words.
func TestShapes_AreThoseOfTheTypes(t *testing.T) {
	t.Parallel()
	compareShape(t, "question", questionShape, reflect.TypeFor[question]())
}

func compareShape(t *testing.T, name string, s *shape, typ reflect.Type) {
	t.Helper()
	switch typ.Kind() {
	case reflect.String:
		if s != textShape {
			t.Errorf("%s: shape %q, want a string", name, s.kind)
		}
	case reflect.Int64:
		if s != integerShape {
			t.Errorf("%s: shape %q, want an integer", name, s.kind)
		}
	case reflect.Map:
		compareShape(t, name+".*", s.fields["*"], typ.Elem())
	case reflect.Struct:
		for i := range typ.NumField() {
			field, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if inner := s.fields[field]; inner == nil {
				t.Errorf("%s.%s: no shape", name, field)
			} else {
				compareShape(t, name+"."+field, inner, typ.Field(i).Type)
			}
		}
		if len(s.fields) != typ.NumField() {
			t.Errorf("%s: %d shapes for %d fields", name, len(s.fields), typ.NumField())
		}
	default:
		t.Errorf("%s: unexpected %s", name, typ)
	}
}

func TestShapes_NameKindsAsJSONHasThem(t *testing.T) {
	t.Parallel()
	for value, want := range map[any]string{
		"x": "a string", true: "a boolean", json.Number("1"): "an integer", json.Number("1.5"): "a number", json.Number("1e3"): "a number",
	} {
		if got := kindOf(value); got != want {
			t.Errorf("%v: %q, want %q", value, got, want)
		}
	}
}
