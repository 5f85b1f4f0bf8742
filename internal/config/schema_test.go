package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sluicehq/sluice/docs/schema"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

var update = flag.Bool("update", false, "write the JSON Schemas anew")

func TestSchemas_AreMadeFromTheStructs(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]map[string]any{
		"sluice.schema.json": newGenerator(t).document("sluice configuration", reflect.TypeFor[Config](), []string{"toml"}, defaultValues()),
		// TOML names lists of tables in the singular, as [[rule]] reads; YAML and JSON in the plural.
		"rules.schema.json": newGenerator(t).document("sluice rules", reflect.TypeFor[ruledoc.Document](), []string{"toml", "yaml"}, nil),
	} {
		path := filepath.Join("..", "..", "docs", "schema", name)
		var text bytes.Buffer
		enc := json.NewEncoder(&text)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		if err := enc.Encode(want); err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, text.Bytes()) {
			t.Errorf("%s is out of date (%v): run go test ./internal/config -run TestSchemas -update", path, err)
		}
	}
}

func compile(t *testing.T, text []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// asJSON is a TOML document as editors hand it to a schema.
func asJSON(t *testing.T, text string) any {
	t.Helper()
	var doc map[string]any
	if err := toml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestConfigSchema_AgreesWithLoad(t *testing.T) {
	t.Parallel()
	s := compile(t, schema.Config)
	defaults := printed(t, &Loaded{Config: Default()}, PrintOptions{Effective: true})
	for name, text := range map[string]string{"defaults": defaults, "sample": strings.Replace(sample, `"X-\"Y\""`, `"X-Y"`, 1), "empty": ""} {
		if err := s.Validate(asJSON(t, text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{
		"enabeld = true", "http.listen = 5", "log.level = 'loud'", "limiter.timeout = '5 parsecs'", "limiter.timeout = 5", "identity.trusted_proxies = ['10.0.0.1']",
		"identity.order = ['ip']", "answers.headers = ['x']", "[[gateway.route]]\npath = '/'", "[[rule]]\nname = 'a'\nlimits = [{limit = 1}]", "[[rule]]\nname = 'a'\naction = 'explode'",
		"[[identity.jwt]]\nissuer = 'x'",
	} {
		if s.Validate(asJSON(t, text)) == nil {
			t.Errorf("%q: the schema takes it", text)
		}
	}
}

func TestRulesSchema_TakesBothWaysToNameLists(t *testing.T) {
	t.Parallel()
	s := compile(t, schema.Rules)
	for _, text := range []string{
		"[[rule]]\nname = 'a'\nkey = ['user']\nlimits = [{limit = 1, window = '1s'}]",
		"rules = [{name = 'a', limits = [{limit = 1, window = '7d', algorithm = 'fixed_window'}]}]\ntiers = [{name = 'gold'}]",
		"[[block]]\ncidr = '192.0.2.0/24'\nreason = 'x'\nuntil = 2027-01-01T00:00:00Z",
	} {
		if err := s.Validate(asJSON(t, text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"[[rule]]\nnamme = 'a'", "[http]\nlisten = ''", "[[rule]]\nname = 'a'\nlimits = [{limit = 1, window = 5}]"} {
		if s.Validate(asJSON(t, text)) == nil {
			t.Errorf("%q: the schema takes it", text)
		}
	}
}

func TestSchemas_TakeTheirDescriptionsFromComments(t *testing.T) {
	t.Parallel()
	g := newGenerator(t)
	for _, f := range []string{"config.HTTP.Listen", "ruledoc.Rule.Enabled", "sluice.Rule.Priority", "sluice.Limit.Burst", "config.Identity.Order"} {
		if g.comments[f] == "" {
			t.Errorf("%s has no comment", f)
		}
	}
}
