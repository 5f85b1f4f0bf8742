package config

import (
	"encoding"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// shape tells how the value of a field is written.
type shape uint8

const (
	single     shape = iota // text, number, boolean, duration, network, time
	list                    // several of them
	dictionary              // text by name
	table                   // fields with names
	tables                  // a list of tables
)

// member is a named field of a struct, with those of embedded structs drawn in, as in the file.
type member struct {
	name  string
	index []int
	typ   reflect.Type
	// optional members are left out when they are zero.
	optional bool
}

// members lists the fields of a struct in their order.
func members(t reflect.Type) []member {
	var all []member
	for i := range t.NumField() {
		f := t.Field(i)
		tag, tagged := f.Tag.Lookup("toml")
		if f.Anonymous && !tagged {
			for _, m := range members(f.Type) {
				m.index = append(slices.Clone(f.Index), m.index...)
				all = append(all, m)
			}
			continue
		}
		name, opts, _ := strings.Cut(tag, ",")
		all = append(all, member{name: name, index: f.Index, typ: f.Type, optional: strings.Contains(opts, "omitempty")})
	}
	return all
}

// names of members.
func names(ms []member) []string {
	all := make([]string, len(ms))
	for i, m := range ms {
		all[i] = m.name
	}
	return all
}

var textType = reflect.TypeFor[encoding.TextUnmarshaler]()

func shapeOf(t reflect.Type) shape {
	switch {
	case reflect.PointerTo(t).Implements(textType):
		return single
	case t.Kind() == reflect.Struct:
		return table
	case t.Kind() == reflect.Slice && shapeOf(t.Elem()) == table:
		return tables
	case t.Kind() == reflect.Slice:
		return list
	case t.Kind() == reflect.Map:
		return dictionary
	default:
		return single
	}
}

// leaf is a value of a Config with its whole name.
type leaf struct {
	// path has indices: "gateway.route[0].upstream".
	path string
	// name has none: "gateway.route.upstream".
	name   string
	member member
	value  reflect.Value
}

// visit calls f for every value in a struct, in the file's order. The values are addressable when the struct is.
func visit(v reflect.Value, path, name string, f func(leaf)) {
	for _, m := range members(v.Type()) {
		at, value := joinKey(path, m.name), v.FieldByIndex(m.index)
		full := joinKey(name, m.name)
		switch shapeOf(m.typ) {
		case table:
			visit(value, at, full, f)
		case tables:
			for i := range value.Len() {
				visit(value.Index(i), indexed(at, i), full, f)
			}
		default:
			f(leaf{path: at, name: full, member: m, value: value})
		}
	}
}

// Field is the description of one name that a configuration can have.
type Field struct {
	// Name is dotted: "redis.url". Fields of tables in lists have no index: "gateway.route.path".
	Name string
	// FileOnly fields belong to tables in lists, which only a file can hold.
	FileOnly bool

	typ reflect.Type
}

// Fields lists every name that a configuration can have, in the order of the structs.
func Fields() []Field {
	return fieldsOf(reflect.TypeFor[Config](), "", false)
}

func fieldsOf(t reflect.Type, prefix string, fileOnly bool) []Field {
	var all []Field
	for _, m := range members(t) {
		name := joinKey(prefix, m.name)
		switch shapeOf(m.typ) {
		case table:
			all = append(all, fieldsOf(m.typ, name, fileOnly)...)
		case tables:
			all = append(all, fieldsOf(m.typ.Elem(), name, true)...)
		default:
			all = append(all, Field{Name: name, FileOnly: fileOnly, typ: m.typ})
		}
	}
	return all
}

// variable is the name of the environment variable that sets a field.
func variable(field string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(field, ".", "__"))
}

// joinKey appends a key to a path, quoted when it could be mistaken for several.
func joinKey(path, key string) string {
	if key == "" || strings.ContainsFunc(key, notBare) {
		key = strconv.Quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func notBare(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
}

func indexed(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
