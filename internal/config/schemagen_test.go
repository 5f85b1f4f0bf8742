package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/ruledoc"
)

// generator makes a JSON Schema of Go structs: names and types by reflection, descriptions from the comments of the fields.
type generator struct {
	comments map[string]string // by "package.Type.Field"
	defs     map[string]any
}

// sources are the files with comments. Fields of rules that have none in ruledoc mean the same as those of the root package.
var sources = map[string][]string{
	"config":  {"config.go"},
	"ruledoc": {"../ruledoc/document.go", "../ruledoc/duration.go"},
	"sluice":  {"../../rule.go", "../../limit.go", "../../request.go"},
}

// enums are the fields of few values.
var enums = map[string][]string{
	"config.Log.Level": logLevels, "config.Log.Format": logFormats, "config.Identity.Order": orders, "config.Identity.Forwarded": forwardHeaders,
	"config.Answers.Headers": dialects, "config.Issuer.Algorithms": algorithms,
	"ruledoc.Rule.Action":       {"reject", "throttle", "shadow", "allow", "block"},
	"ruledoc.Rule.OnStoreError": {"local", "allow", "deny"},
	"ruledoc.Limit.Algorithm":   {"sliding_window", "fixed_window", "sliding_log", "token_bucket"},
}

// required are the fields that a table cannot do without.
var required = map[string][]string{
	"config.Upstream": {"name", "url"}, "config.Route": {"upstream"}, "config.Issuer": {"issuer", "audience", "algorithms"},
	"ruledoc.Rule": {"name"}, "ruledoc.Limit": {"limit", "window"}, "ruledoc.Tier": {"name"}, "ruledoc.Override": {"rule", "limits"},
	"ruledoc.Block": {"reason"},
}

func newGenerator(t *testing.T) *generator {
	t.Helper()
	g := &generator{comments: map[string]string{}, defs: map[string]any{}}
	for pkg, files := range sources {
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.FromSlash(name), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				spec, ok := n.(*ast.TypeSpec)
				if fields, isStruct := typeOf(spec, ok); isStruct {
					for _, f := range fields.Fields.List {
						for _, name := range f.Names {
							g.comments[pkg+"."+spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
						}
					}
				}
				return true
			})
		}
	}
	return g
}

func typeOf(spec *ast.TypeSpec, ok bool) (*ast.StructType, bool) {
	if !ok {
		return nil, false
	}
	s, isStruct := spec.Type.(*ast.StructType)
	return s, isStruct
}

// document returns the schema of a file that holds a struct.
func (g *generator) document(title string, t reflect.Type, tags []string, defaults map[string]any) map[string]any {
	root := g.object(t, tags, "", defaults)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = title
	root["$defs"] = g.defs
	return root
}

// object describes a struct by the names that each of the tags gives its fields.
func (g *generator) object(t reflect.Type, tags []string, path string, defaults map[string]any) map[string]any {
	properties := map[string]any{}
	var add func(t reflect.Type)
	add = func(t reflect.Type) {
		for i := range t.NumField() {
			f := t.Field(i)
			if _, tagged := f.Tag.Lookup("toml"); f.Anonymous && !tagged {
				add(f.Type)
				continue
			}
			for _, tag := range tags {
				name, _, _ := strings.Cut(f.Tag.Get(tag), ",")
				properties[name] = g.property(t, f, joinKey(path, name), defaults)
			}
		}
	}
	add(t)
	schema := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if names := required[t.String()]; names != nil {
		schema["required"] = names
	}
	return schema
}

func (g *generator) property(owner reflect.Type, f reflect.StructField, path string, defaults map[string]any) map[string]any {
	name := owner.String() + "." + f.Name
	schema := g.typed(f.Type, path, defaults)
	if values := enums[name]; values != nil {
		if items, isList := schema["items"].(map[string]any); isList {
			items["enum"] = values
		} else {
			schema["enum"] = values
		}
	}
	comment := g.comments[name]
	if comment == "" {
		comment = g.comments[strings.Replace(name, "ruledoc.", "sluice.", 1)]
	}
	if comment != "" {
		schema["description"] = comment
	}
	if value, known := defaults[path]; known {
		schema["default"] = value
	}
	return schema
}

func (g *generator) typed(t reflect.Type, path string, defaults map[string]any) map[string]any {
	switch t {
	case reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case reflect.TypeFor[ruledoc.Duration]():
		return map[string]any{"type": "string", "pattern": `^(\d+d|([0-9.]+(ns|us|µs|ms|s|m|h))+|0)$`}
	case reflect.TypeFor[netip.Prefix]():
		return map[string]any{"type": "string", "pattern": `^[0-9a-fA-F:.]+/\d+$`}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.typed(t.Elem(), path, defaults)
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": g.typed(t.Elem(), path, defaults)}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}}
	case reflect.Struct:
		// Tables that stand in one place are written out there, because their defaults differ; the others once.
		if strings.HasPrefix(t.String(), "config.") && !slices.Contains([]string{"Upstream", "Route", "Issuer"}, t.Name()) {
			return g.object(t, []string{"toml"}, path, defaults)
		}
		if _, known := g.defs[t.Name()]; !known {
			g.defs[t.Name()] = nil // ends a recursion, should there ever be one
			g.defs[t.Name()] = g.object(t, []string{"toml"}, "", nil)
		}
		return map[string]any{"$ref": "#/$defs/" + t.Name()}
	default:
		return map[string]any{"type": "integer"}
	}
}

// defaultValues are those of Default, as they are written.
func defaultValues() map[string]any {
	all := map[string]any{}
	cfg := Default()
	visit(reflect.ValueOf(&cfg).Elem(), "", "", func(f leaf) {
		if !f.value.IsZero() {
			all[f.path] = f.value.Interface()
		}
	})
	return all
}
