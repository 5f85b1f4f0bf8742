package checkhttp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/internal/engine"
)

// shape is what a JSON value must look like.
type shape struct {
	kind   string
	fields map[string]*shape // of an object; "*" stands for any name
	each   *shape            // of a list
}

// The grammar of the bodies, never written. A test holds it against the types that are decoded into.
var (
	textShape     = &shape{kind: "a string"}
	integerShape  = &shape{kind: "an integer"}
	questionShape = &shape{kind: "an object", fields: map[string]*shape{
		"namespace": textShape,
		"subject": {kind: "an object", fields: map[string]*shape{
			"tenant": textShape, "user": textShape, "api_key": textShape, "ip": textShape, "tier": textShape,
		}},
		"route":      textShape,
		"method":     textShape,
		"attributes": {kind: "an object", fields: map[string]*shape{"*": textShape}},
		"cost":       integerShape,
	}}
	batchShape = &shape{kind: "an object", fields: map[string]*shape{
		"requests": {kind: "a list", each: questionShape},
	}}
)

// faults appends what does not fit. A null fits everywhere, as encoding/json has it.
func (s *shape) faults(list []engine.Fault, path []string, value any) []engine.Fault {
	const most = 20 // enough to see what is wrong
	if value == nil || len(list) >= most {
		return list
	}
	path = path[:len(path):len(path)]
	if kind := kindOf(value); kind != s.kind {
		return append(list, engine.Fault{Path: path, Problem: fmt.Sprintf("is %s: it must be %s", kind, s.kind)})
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range sortedNames(v) {
			if inner := s.field(name); inner == nil {
				list = append(list, engine.Fault{Path: append(path, name), Problem: "unknown field: known are " + s.names()})
			} else {
				list = inner.faults(list, append(path, name), v[name])
			}
		}
	case []any:
		for i := range v {
			list = s.each.faults(list, append(path, strconv.Itoa(i)), v[i])
		}
	}
	return list
}

func (s *shape) field(name string) *shape {
	if every := s.fields["*"]; every != nil {
		return every
	}
	return s.fields[name]
}

func (s *shape) names() string { return strings.Join(slices.Sorted(maps.Keys(s.fields)), ", ") }

func sortedNames(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// kindOf names the kind of a JSON value.
func kindOf(value any) string {
	switch v := value.(type) {
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case json.Number:
		if _, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return "an integer"
		}
		return "a number"
	case []any:
		return "a list"
	default:
		return "an object"
	}
}
