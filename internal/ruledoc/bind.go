package ruledoc

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// binder fills structs from a tree, by the names in their tags, and reports everything that does not fit.
type binder struct {
	tag    string // "toml", "yaml" or "json"
	plans  map[reflect.Type]*plan
	values int
	path   []step // to what is being filled
	found  []fieldAt
}

// step is a name, or an index in a list.
type step struct {
	name  string
	index int
}

// fieldAt is a fault before it is known which entry it is in.
type fieldAt struct {
	at    place
	field string
	err   error
}

// plan is how the fields of a struct are called.
type plan struct {
	names  []string
	fields map[string]planned
}

type planned struct {
	index []int
	// defaulted tells that zero stands for a default.
	defaulted bool
}

func newBinder(tag string) *binder {
	return &binder{tag: tag, plans: map[reflect.Type]*plan{}}
}

// report notes a fault of what is being filled. Paths are written only here: most values have no fault.
func (b *binder) report(at place, err error) {
	var path strings.Builder
	for _, s := range b.path {
		switch {
		case s.name == "":
			fmt.Fprintf(&path, "[%d]", s.index)
		case path.Len() > 0:
			path.WriteString("." + s.name)
		default:
			path.WriteString(s.name)
		}
	}
	b.found = append(b.found, fieldAt{at, path.String(), err})
}

// within fills what is one step further.
func (b *binder) within(s step, n *node, v reflect.Value) {
	b.path = append(b.path, s)
	b.bind(n, v)
	b.path = b.path[:len(b.path)-1]
}

// errTooMany: aliases of YAML can make a small file stand for a large one.
var errTooMany = fmt.Errorf("stands for more than %d values", maxValues)

// bind fills v, which must be settable.
func (b *binder) bind(n *node, v reflect.Value) {
	if b.values++; b.full() {
		return // Decode reports it
	}
	if err, unreadable := n.value.(error); unreadable {
		b.report(n.at, fmt.Errorf("found %w", err))
		return
	}
	switch target := v.Addr().Interface().(type) {
	case *Duration:
		b.duration(n, target)
		return
	case *time.Time:
		b.time(n, target)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		b.structure(n, v)
	case reflect.Slice:
		b.slice(n, v)
	case reflect.Map:
		b.textMap(n, v)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		b.bind(n, v.Elem())
	default:
		b.scalar(n, v)
	}
}

// full tells that there were more values than a file may stand for.
func (b *binder) full() bool { return b.values > maxValues }

func (b *binder) structure(n *node, v reflect.Value) {
	t, ok := n.value.(*table)
	if !ok {
		b.report(n.at, fmt.Errorf("want a table of %s, found %s", strings.Join(b.planOf(v.Type()).names, ", "), n.describe()))
		return
	}
	p := b.planOf(v.Type())
	for i := range t.fields {
		f := &t.fields[i]
		b.path = append(b.path, step{name: shorten(f.name)})
		to, known := p.fields[f.name]
		switch number, isNumber := f.value.value.(int64); {
		case !known:
			b.report(f.at, unknown("field", f.name, p.names))
		case isNumber && number == 0 && to.defaulted:
			b.report(f.at, errors.New("0 is the same as leaving it out: write the number that you mean, or nothing"))
		default:
			b.bind(f.value, v.FieldByIndex(to.index))
		}
		b.path = b.path[:len(b.path)-1]
	}
}

func (b *binder) planOf(t reflect.Type) *plan {
	if p := b.plans[t]; p != nil {
		return p
	}
	p := &plan{fields: map[string]planned{}}
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous {
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get(b.tag), ",")
		whole := f.Type.Kind() == reflect.Int || f.Type.Kind() == reflect.Int64
		p.names = append(p.names, name)
		p.fields[name] = planned{f.Index, whole && f.Type != reflect.TypeFor[Duration]() && strings.Contains(options, "omitempty")}
	}
	b.plans[t] = p
	return p
}

func (b *binder) slice(n *node, v reflect.Value) {
	items, ok := n.value.(list)
	if !ok {
		b.report(n.at, fmt.Errorf("want a list, found %s", n.describe()))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
	for i, item := range items {
		if b.full() {
			return
		}
		b.within(step{index: i}, item, v.Index(i))
	}
}

func (b *binder) textMap(n *node, v reflect.Value) {
	t, ok := n.value.(*table)
	if !ok {
		b.report(n.at, fmt.Errorf("want a table, found %s", n.describe()))
		return
	}
	m := make(map[string]string, len(t.fields))
	for i := range t.fields {
		f := &t.fields[i]
		text := ""
		b.within(step{name: shorten(f.name)}, f.value, reflect.ValueOf(&text).Elem())
		m[f.name] = text
	}
	v.Set(reflect.ValueOf(m))
}

func (b *binder) scalar(n *node, v reflect.Value) {
	want := map[reflect.Kind]string{
		reflect.String: "a text in quotes", reflect.Bool: "true or false", reflect.Int: "a whole number", reflect.Int64: "a whole number",
	}[v.Kind()]
	value := reflect.ValueOf(n.value)
	switch {
	case n.value == nil || !slices.Contains([]reflect.Kind{reflect.String, reflect.Bool, reflect.Int64}, value.Kind()),
		v.Kind() != value.Kind() && (v.Kind() != reflect.Int || value.Kind() != reflect.Int64):
		b.report(n.at, fmt.Errorf("want %s, found %s", want, n.describe()))
	case v.Kind() == reflect.Int && v.OverflowInt(value.Int()):
		b.report(n.at, fmt.Errorf("found the number %d, which is too large", value.Int()))
	default:
		v.Set(value.Convert(v.Type()))
	}
}

func (b *binder) duration(n *node, to *Duration) {
	text, ok := n.value.(string)
	if !ok {
		b.report(n.at, fmt.Errorf("want a duration such as \"30s\", found %s", n.describe()))
		return
	}
	if err := to.UnmarshalText([]byte(text)); err != nil {
		b.report(n.at, err)
	}
}

func (b *binder) time(n *node, to *time.Time) {
	value := n.value
	if text, ok := value.(string); ok { // YAML and JSON have no times of their own
		value = moment(text)
	}
	switch value := value.(type) {
	case time.Time:
		*to = value
	case error:
		b.report(n.at, fmt.Errorf("found %w", value))
	default:
		b.report(n.at, fmt.Errorf("want a time such as 2026-12-31T23:59:59Z, found %s", n.describe()))
	}
}
