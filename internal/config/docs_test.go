package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const (
	fieldsBegin = "<!-- fields: made by go test ./internal/config -run TestDocs -update -->\n"
	fieldsEnd   = "<!-- end of fields -->\n"
)

// TestDocs_ListEveryField keeps the tables of docs/configuration.md equal to the structs.
func TestDocs_ListEveryField(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "docs", "configuration.md")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), fieldsBegin)
	_, after, closed := strings.Cut(rest, fieldsEnd)
	if !found || !closed {
		t.Fatalf("%s has no place for the fields", path)
	}
	want := before + fieldsBegin + fieldTables(t) + fieldsEnd + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(data) {
		t.Errorf("%s is out of date: run go test ./internal/config -run TestDocs -update", path)
	}
	for _, f := range Fields() {
		if !strings.Contains(want, "`"+f.Name+"`") {
			t.Errorf("%s is not in %s", f.Name, path)
		}
	}
}

// fieldTables writes a table for each of the file's tables.
func fieldTables(t *testing.T) string {
	t.Helper()
	d := docWriter{g: newGenerator(t), defaults: defaultValues()}
	d.defaults["gateway.upstream.timeout"], d.defaults["gateway.route.path"] = "30s", "/"
	d.defaults["gateway.route.namespace"], d.defaults["identity.jwt.header"], d.defaults["identity.jwt.user_claim"] = "default", "Authorization", "sub"
	d.table("", "", reflect.TypeFor[Config]())
	return d.out.String()
}

type docWriter struct {
	g        *generator
	defaults map[string]any
	out      strings.Builder
}

func (d *docWriter) table(header, path string, t reflect.Type) {
	var rows, inner []func()
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		for i := range t.NumField() {
			f := t.Field(i)
			tag, tagged := f.Tag.Lookup("toml")
			if f.Anonymous && !tagged {
				walk(f.Type)
				continue
			}
			key, _, _ := strings.Cut(tag, ",")
			name := joinKey(path, key)
			switch shapeOf(f.Type) {
			case table:
				inner = append(inner, func() { d.table("["+name+"]", name, f.Type) })
			case tables:
				inner = append(inner, func() { d.table("[["+name+"]]", name, f.Type.Elem()) })
			default:
				rows = append(rows, func() { d.row(name, t.String()+"."+f.Name, f.Type) })
			}
		}
	}
	walk(t)
	if len(rows) > 0 {
		if header == "" {
			header = "At the top"
		}
		fmt.Fprintf(&d.out, "\n### %s\n\n| field | default | acts | meaning |\n|---|---|---|---|\n", header)
	}
	for _, row := range rows {
		row()
	}
	for _, table := range inner {
		table()
	}
	if header == "" {
		d.out.WriteByte('\n')
	}
}

func (d *docWriter) row(name, comment string, t reflect.Type) {
	text := d.g.comments[comment]
	if text == "" {
		text = d.g.comments[strings.Replace(comment, "ruledoc.", "sluice.", 1)]
	}
	// The default has a column of its own: the value itself where there is one, else the comment's words for it.
	text, words, _ := strings.Cut(text, " Default")
	value := strings.TrimSuffix(strings.TrimLeft(words, ": "), ".")
	if v, known := d.defaults[name]; known {
		value = "`" + literal(reflect.ValueOf(v)) + "`"
	}
	acts := "restart"
	if Live(name) {
		acts = "live"
	}
	if isSecret(t) {
		text = strings.TrimSpace(text + " Secret.")
	}
	fmt.Fprintf(&d.out, "| `%s` | %s | %s | %s |\n", name, strings.ReplaceAll(value, "|", "\\|"), acts, strings.ReplaceAll(text, "|", "\\|"))
}
