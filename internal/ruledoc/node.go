package ruledoc

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// node is a value as it was written, whatever the format, with its place. The parsers make it and the binder reads it, so
// that all formats report the same faults in the same words.
type node struct {
	at place
	// value is a string, int64, float64, bool, time.Time, nil, table, list, or an error: a value that cannot be read.
	value any
}

// list is an ordered list of values.
type list []*node

// table has named values in the order they were written.
type table struct {
	fields []field
	index  map[string]int // made when a search through fields would be slow
}

type field struct {
	name  string
	at    place
	value *node
}

// maxScanned is how many fields are searched one by one. Rules have fewer; files made to be slow have millions.
const maxScanned = 24

// find returns the named field, nil when there is none.
func (t *table) find(name string) *field {
	if t.index != nil {
		if i, found := t.index[name]; found {
			return &t.fields[i]
		}
		return nil
	}
	for i := range t.fields {
		if t.fields[i].name == name {
			return &t.fields[i]
		}
	}
	return nil
}

func (t *table) add(name string, at place, value *node) {
	t.fields = append(t.fields, field{name, at, value})
	switch n := len(t.fields); {
	case t.index != nil:
		t.index[name] = n - 1
	case n > maxScanned:
		t.index = make(map[string]int, 2*n)
		for i := range t.fields {
			t.index[t.fields[i].name] = i
		}
	}
}

// locate follows a path such as "limits[1].window" as far as it leads and returns the place it comes to.
func (n *node) locate(path string) place {
	at := n.at
	for path != "" {
		var step string
		step, path = nextStep(path)
		switch value := n.value.(type) {
		case *table:
			f := value.find(step)
			if f == nil {
				return at
			}
			n, at = f.value, f.at
		case list:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(value) {
				return at
			}
			n = value[i]
			if n.at != (place{}) {
				at = n.at
			}
		default:
			return at
		}
	}
	return at
}

// nextStep cuts the first name or index off a path.
func nextStep(path string) (step, rest string) {
	path = strings.TrimPrefix(path, "[")
	end := strings.IndexAny(path, ".[]")
	if end < 0 {
		return path, ""
	}
	step, rest = path[:end], path[end:]
	rest = strings.TrimPrefix(rest, "]")
	return step, strings.TrimPrefix(rest, ".")
}

// describe names what was written, for a message that wanted something else.
func (n *node) describe() string {
	switch value := n.value.(type) {
	case string:
		return "the text " + strconv.Quote(shorten(value))
	case int64:
		return fmt.Sprintf("the number %d", value)
	case float64:
		return fmt.Sprintf("the number %v", value)
	case bool:
		return strconv.FormatBool(value)
	case time.Time:
		return "a time"
	case *table:
		return "a table"
	case list:
		return "a list"
	case error:
		return value.Error()
	default:
		return "nothing"
	}
}

// shorten keeps messages readable when a value is not.
func shorten(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
