package ruledoc

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDecode_ReadsTheSameDocumentFromEveryFormat(t *testing.T) {
	t.Parallel()
	want := decodeFile(t, "testdata/all.toml", TOML)
	if r := want.Rules[0]; r.Response.Status != 503 || r.Limits[1].Burst != 20 || r.Match.Attributes["plan"] != "trial" || *r.Enabled {
		t.Fatalf("TOML was misread: %+v", r)
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	fromJSON, faults := Decode("all.json", JSON, text)
	if len(faults) > 0 {
		t.Fatalf("faults in %s: %v", text, faults)
	}
	for name, got := range map[string]Document{"yaml": decodeFile(t, "testdata/all.yaml", YAML), "json": fromJSON.Document} {
		if !sameDocument(got, want) {
			t.Errorf("%s reads\n%+v\nwant\n%+v", name, got, want)
		}
	}
}

func decodeFile(t *testing.T, name string, format Format) Document {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	p, faults := Decode(name, format, data)
	if len(faults) > 0 {
		t.Fatalf("faults: %v", faults)
	}
	return p.Document
}

// sameDocument compares documents by meaning: a time is the same in any zone.
func sameDocument(a, b Document) bool {
	inUTC := func(d Document) Document {
		d.Overrides, d.Blocks = slices.Clone(d.Overrides), slices.Clone(d.Blocks)
		for i := range d.Overrides {
			d.Overrides[i].ValidFrom, d.Overrides[i].ValidUntil = d.Overrides[i].ValidFrom.UTC(), d.Overrides[i].ValidUntil.UTC()
		}
		for i := range d.Blocks {
			d.Blocks[i].Until = d.Blocks[i].Until.UTC()
		}
		return d
	}
	return reflect.DeepEqual(inUTC(a), inUTC(b))
}

const faulty = `[[rule]]
nam = "x"
limits = [{ limit = "5", windw = "1h", window = 5 }]
priority = 0

[[rule]]
name = "good"
key = ["ip"]
limits = [{ limit = 5, window = "1m" }]

[[rule]]
name = "modes"
mode = "leased"
action = "rejct"
match = { cidrs = ["10.0.0.1/8"] }
limits = [{ limit = 5, window = "1m", algorithm = "leaky" }]

[[block]]
cidr = "10.0.0.0/8"
user = "x"
reason = "abuse"
until = 2026-12-31T00:00:00

[[exemption]]
reason = "nobody"

[[override]]
user = "u"
rule = "good"
limits = [{ limit = 0, window = "1m" }]
valid_from = 2026-02-01T00:00:00Z
valid_until = 2026-01-01T00:00:00Z
`

func TestDecode_ReportsEveryFaultAtOnceWithItsPlaceAndAHint(t *testing.T) {
	t.Parallel()
	p, faults := Decode("a.toml", TOML, []byte(faulty))
	want := []string{
		`a.toml:2:1: rule without a name: nam: unknown field "nam": did you mean "name"?`,
		`a.toml:3:21: rule without a name: limits[0].limit: want a whole number, found the text "5"`,
		`a.toml:3:26: rule without a name: limits[0].windw: unknown field "windw": did you mean "window"?`,
		`a.toml:3:49: rule without a name: limits[0].window: want a duration such as "30s", found the number 5`,
		`a.toml:4:1: rule without a name: priority: 0 is the same as leaving it out: write the number that you mean, or nothing`,
		`a.toml:15:20: rule "modes": match.cidrs[0]: "10.0.0.1/8" has bits beyond its length: write 10.0.0.0/8 for the network, or 10.0.0.1 for the address`,
		`a.toml:16:39: rule "modes": limits[0].algorithm: unknown algorithm "leaky": want one of ["sliding_window" "fixed_window" "sliding_log" "token_bucket"]`,
		`a.toml:14:1: rule "modes": action: unknown action "rejct": want one of ["reject" "throttle" "shadow" "allow" "block"]`,
		`a.toml:13:1: rule "modes": mode: "leased" is not available yet: write "exact", or leave it out`,
		`a.toml:22:9: block of user "x": until: found 2026-12-31T00:00:00, a time without a zone`,
		`a.toml:24:3: exemption of nobody: names nobody: write one of tenant, user, api_key, cidr`,
		`a.toml:32:1: override of rule "good" for user "u": valid_until: is not after valid_from, so the override is never valid`,
		`a.toml:30:11: override of rule "good" for user "u": limits[0]: limit is 0: it must be at least 1 (to refuse everything use action "block")`,
	}
	var got []string
	for _, f := range faults {
		got = append(got, f.Error())
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if p == nil || len(p.Document.Rules) != 1 || p.Document.Rules[0].Name != "good" || len(p.Document.Blocks) != 0 {
		t.Errorf("kept %+v, want only the good rule", p)
	}
}

func TestDecode_RefusesATextItCannotUnderstandAsAWhole(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		format     Format
		text, want string
	}{
		{TOML, "[[rule]]\nname = \"x", "f:2:9: not TOML: unterminated basic string"},
		{TOML, "[[rule]]\nname = \"x\"\nname = \"y\"\n", `f:3:1: not TOML: "name" is there twice`},
		{TOML, "[rule]\nname = \"x\"\n", "write [[rule]] above each entry"},
		{TOML, "[[rules]]\nname = \"x\"\n", `f:1:3: unknown section "rules": did you mean "rule"?`},
		{TOML, "a = 1\n[a.b]\n", `f:2:2: not TOML: "a" is no table`},
		{TOML, "[a]\n[a]\n", "not TOML: "},
		{TOML, "name = \"\xff\"", "f:1:9: is not UTF-8"},
		{YAML, "rules:\n  - name: [", "not YAML: "},
		{YAML, "rules:\n - {name: a, name: b}\n", `f:2:14: "name" is there twice`},
		{YAML, "rule:\n - name: a\n", `f:1:1: unknown section "rule": did you mean "rules"?`},
		{YAML, "rules: {name: a}\n", "want a list, found a table"},
		{YAML, "rules: !!set {a}\n", "tags such as"},
		{YAML, "rules: []\n---\nrules: []\n", "f:2:1: a second document"},
		{YAML, "rules:\n - &a\n   match: *a\n", "stands for something that holds it"},
		{YAML, "rules:\n - <<: {name: a}\n", `"<<" is not understood`},
		{YAML, "- a\n", "want a table with the sections rules"},
		{JSON, `{"rules": [}`, "not JSON: "},
		{JSON, `{"rules": []} x`, "not JSON: "},
		{JSON, `{"rules": [], "rules": []}`, `"rules" is there twice`},
		{JSON, `{"rules": [`, "it ends too early"},
		{JSON, strings.Repeat("[", 100), "nested more than 64 deep"},
		{TOML, strings.Repeat("#\n", MaxFileSize/2+1), "the most is"},
	} {
		p, faults := Decode("f", c.format, []byte(c.text))
		if p != nil || len(faults) != 1 || !strings.Contains(faults[0].Error(), c.want) {
			t.Errorf("%s %.60q: parsed %v, faults %v, want one with %q", c.format, c.text, p != nil, faults, c.want)
		}
	}
}

func TestDecode_IsStrictAboutTypesInYAMLAndJSON(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"name: 42", "f:2:11: rule without a name: name: want a text in quotes, found the number 42"},
		{"name: yes", ""}, // text: only true and false are bools
		{"enabled: on", `want true or false, found the text "on"`},
		{"priority: 1.5", "want a whole number, found the number 1.5"},
		{"priority: 007", "leading zeros"},
		{"priority: 99999999999999999999", "want a whole number, found the number 1e+20"},
		{"match:", "want a table of tenants, users"},
		{"match: {routes: /a}", `want a list, found the text "/a"`},
		{"match: {attributes: {a: 1}}", "match.attributes.a: want a text in quotes, found the number 1"},
		{"limits: [1]", "limits[0]: want a table of algorithm, limit, window, burst, found the number 1"},
		{"max_delay: 10 minutes", `"10 minutes" is not a duration`},
	} {
		_, faults := Decode("f", YAML, []byte("rules:\n  - "+c.text+"\n"))
		if c.want == "" && len(faults) == 0 {
			continue
		}
		if len(faults) != 1 || c.want == "" || !strings.Contains(faults[0].Error(), c.want) {
			t.Errorf("%s: faults %v, want one with %q", c.text, faults, c.want)
		}
	}
}

func TestDecode_TakesAliasesButNotWhatTheyGrowInto(t *testing.T) {
	t.Parallel()
	p, faults := Decode("f", YAML, []byte("rules:\n - {name: a, key: [ip], limits: &l [{limit: 1, window: 1s}]}\n - {name: b, key: [user], limits: *l}\n"))
	if len(faults) > 0 || p.Document.Rules[1].Limits[0].Limit != 1 {
		t.Errorf("parsed %+v, faults %v", p, faults)
	}
	// A few kilobytes that stand for 10^7 limits.
	limits := "l: &l [" + strings.Repeat("{limit: 1, window: 1s},", 1000) + "]\n"
	rule := "r: &r {name: a, limits: *l}\n"
	p, faults = Decode("f", YAML, []byte(limits+rule+"rules: ["+strings.Repeat("*r,", 10_000)+"]\n"))
	if p != nil || len(faults) == 0 {
		t.Errorf("parsed %v, %d faults, want it refused", p != nil, len(faults))
	}
}

func TestDecodeEmbedded_LooksOnlyAtItsOwnSections(t *testing.T) {
	t.Parallel()
	p, faults := DecodeEmbedded("sluice.toml", []byte("node = \"a\"\n[http]\nlisten = \":1\"\n[[rule]]\nname = \"r\"\n"))
	if len(faults) > 0 || len(p.Document.Rules) != 1 {
		t.Errorf("parsed %+v, faults %v", p, faults)
	}
}

func TestDecode_CarriesThousandsOfRules(t *testing.T) {
	t.Parallel()
	var doc Document
	for i := range 3_000 {
		doc.Rules = append(doc.Rules, Rule{
			Name: "rule-" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + time.Duration(i).String(), Key: []string{"user"},
			Match: Match{Tiers: []string{"free"}, Routes: []string{"/api/{id}/items"}}, Limits: []Limit{{Algorithm: "token_bucket", Limit: 10, Window: Duration(time.Second)}},
		})
	}
	for format, write := range map[Format]func(*bytes.Buffer) error{
		TOML: func(b *bytes.Buffer) error { return doc.WriteTOML(b) },
		YAML: func(b *bytes.Buffer) error { return doc.WriteYAML(b) },
	} {
		var text bytes.Buffer
		if err := write(&text); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		p, faults := Decode("big", format, text.Bytes())
		if len(faults) > 0 || len(p.Document.Rules) != 3_000 {
			t.Fatalf("%s: %d faults, first %v", format, len(faults), faults[0])
		}
		t.Logf("%s: %d bytes in %s", format, text.Len(), time.Since(start))
	}
}

func TestFault_QuotesTheLineWithAMarkUnderThePlace(t *testing.T) {
	t.Parallel()
	_, faults := Decode("a.toml", TOML, []byte("[[rule]]\n\tname = 5\n"))
	want := "a.toml:2:9: rule without a name: name: want a text in quotes, found the number 5\n" +
		"    2 | \tname = 5\n" +
		"      | \t       ^"
	if got := faults[0].Quote(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	text, err := json.Marshal(faults[0])
	if err != nil || !strings.Contains(string(text), `"line":2`) || !strings.Contains(string(text), `"message":"want a text`) {
		t.Errorf("as JSON: %s, %v", text, err)
	}
}

func TestReference_HasOnlyExamplesThatWork(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := 0
	for format, mark := range map[Format]string{TOML: "```toml\n", YAML: "```yaml\n"} {
		for _, block := range strings.Split(string(text), mark)[1:] {
			block, _, _ = strings.Cut(block, "```")
			p, faults := Decode("rules.md", format, []byte(block))
			m, _ := Merge(p)
			_, _, compiled := m.Compile(nil)
			for _, f := range append(faults, compiled...) {
				t.Error(f.Quote())
			}
			examples++
		}
	}
	if examples < 3 {
		t.Errorf("%d examples, want all that the page has", examples)
	}
}
