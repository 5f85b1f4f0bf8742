package envoyimport_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/envoyimport"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

func run(t *testing.T, texts ...string) (ruledoc.Document, []string) {
	t.Helper()
	var files []envoyimport.File
	for _, text := range texts {
		files = append(files, envoyimport.File{Name: "config.yaml", Data: []byte(text)})
	}
	doc, notes, err := envoyimport.Import(files, envoyimport.Options{})
	if err != nil {
		t.Fatalf("%s: %v", texts, err)
	}
	var lines []string
	for _, n := range notes {
		lines = append(lines, n.String())
	}
	return doc, lines
}

func TestImport_WritesRulesAsAPersonWould(t *testing.T) {
	t.Parallel()
	doc, notes := run(t, `
domain: messaging
descriptors:
  - key: message_type
    value: marketing
    descriptors:
      - key: to_number
        value: "2061111111"
        rate_limit: {unlimited: true}
      - key: to_number
        shadow_mode: true
        rate_limit: {name: numbers, unit: day, requests_per_unit: 5}
  - key: to_number
    value: 206*
    rate_limit: {unit: MONTH, requests_per_unit: 0}
  - key: path
    value: /v1/*
    share_threshold: true
    descriptors:
      - key: user
        rate_limit: {unit: second, requests_per_unit: 10}
  - key: health
`)
	const want = `[[rule]]
namespace = "messaging"
name = "message_type=marketing,to_number=2061111111"
match = { attributes = { descriptor = "message_type=marketing,to_number=2061111111" } }
layer = "descriptor"
action = "allow"
label = "unlimited"

[[rule]]
namespace = "messaging"
name = "message_type=marketing,to_number"
match = { attributes = { descriptor = "message_type=marketing,to_number" } }
key = ["descriptor.2"]
layer = "descriptor"
limits = [{ algorithm = "fixed_window", limit = 5, window = "24h" }]
action = "shadow"
label = "numbers"

[[rule]]
namespace = "messaging"
name = "to_number=206*"
match = { attributes = { descriptor = "to_number=206*" } }
layer = "descriptor"
action = "block"
response = { retry_after = "30d" }

[[rule]]
namespace = "messaging"
name = "path=/v1/*,user"
match = { attributes = { descriptor = "path=/v1/*,user" } }
key = ["descriptor.2"]
layer = "descriptor"
limits = [{ algorithm = "fixed_window", limit = 10, window = "1s" }]

[[rule]]
namespace = "messaging"
name = "health"
match = { attributes = { descriptor = "health" } }
layer = "descriptor"
action = "allow"

[[rule]]
namespace = "messaging"
name = "limits-of-callers"
match = { attributes = { "descriptor.limit" = "caller" } }
key = ["descriptor.entries"]
layer = "descriptor.limit"
limits = [{ algorithm = "fixed_window", limit = 1, window = "1m" }]
label = "caller"
`
	var got bytes.Buffer
	if err := doc.WriteTOML(&got); err != nil {
		t.Fatal(err)
	}
	if got.String() != want || len(notes) > 0 {
		t.Errorf("imported:\n%s\nnotes: %q\nwant:\n%s", got.String(), notes, want)
	}
}

func TestImport_MakesARuleForEachPairThatReplaces(t *testing.T) {
	t.Parallel()
	doc, _ := run(t, `
domain: d
descriptors:
  - {key: a, rate_limit: {name: one, unit: day, requests_per_unit: 1}}
  - {key: b, rate_limit: {name: two, unlimited: true, replaces: [{name: one}]}}
  - {key: c, rate_limit: {name: three, unit: day, requests_per_unit: 1, replaces: [{name: one}, {name: two}]}}
`)
	var got []string
	for _, r := range doc.Rules {
		if strings.Contains(r.Name, "beside") {
			got = append(got, r.Name+" "+r.Action)
		}
	}
	if want := []string{"a beside b allow", "a beside c allow"}; !slices.Equal(got, want) {
		t.Errorf("rules %q, want %q: unlimited ones are not replaced", got, want)
	}
}

func TestImport_KeepsValuesAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	doc, _ := run(t, "domain: d\ndescriptors:\n"+
		"  - {key: a, value: 0777}\n  - {key: a, value: 0x10}\n  - {key: a, value: yes}\n  - {key: a, value: 1_000}\n"+
		"  - {key: a, value: 'x'}\n  - {key: a, value: ~}\n  - {key: a, value: \"a,b=c\\\\\"}\n  - key: a\n    value: |-\n      block\n")
	var got []string
	for _, r := range doc.Rules[:len(doc.Rules)-1] {
		got = append(got, r.Match.Attributes["descriptor"])
	}
	if want := []string{"a=0777", "a=0x10", "a=yes", "a=1_000", "a=x", "a", `a=a\,b=c\\`, "a=block"}; !slices.Equal(got, want) {
		t.Errorf("patterns %q, want %q", got, want)
	}
}

func TestImport_NamesWhatItCannotCarryOver(t *testing.T) {
	t.Parallel()
	const limit = "rate_limit: {unit: day, requests_per_unit: 1}"
	deep := "domain: d\ndescriptors:\n"
	for i := range 9 {
		deep += strings.Repeat("  ", i) + "- key: k\n"
		if i < 8 {
			deep += strings.Repeat("  ", i+1) + "descriptors:\n"
		}
	}
	deep += strings.Repeat("  ", 9) + limit + "\n"
	for text, want := range map[string]string{
		"domain: d\ndescriptors: [{key: a, detailed_metric: true, " + limit + "}]":                           "config.yaml: domain d: a: detailed_metric",
		"domain: d\ndescriptors: [{key: a, value_to_metric: true, " + limit + "}]":                           "value_to_metric",
		"domain: d\ndescriptors: [{key: a, metadata: {x: [1]}, " + limit + "}]":                              "metadata",
		"domain: d\ndescriptors: [{key: a, quota_mode: true, " + limit + "}]":                                "quota_mode",
		"domain: d\ndescriptors: [{key: a, shadow_mode: on, rate_limit: {unit: day, requests_per_unit: 0}}]": "limit of 0",
		"domain: d\ndescriptors: [{key: 'a*', " + limit + "}]":                                               "ends a key",
		"domain: d\ndescriptors: [{key: a, value: 'x*y', " + limit + "}]":                                    "star within a value",
		"domain: d\ndescriptors: [{key: a, value: 'x*', " + limit + "}, {key: a, value: 'xy*'}]":             "a=xy*: left out: never matched, because a=x*",
		"domain: d\ndescriptors: [{key: user, value: '*', " + limit + "}, {key: user_agent, " + limit + "}]": `the key "user_agent"`,
		"domain: d\ndescriptors: [{key: a, rate_limit: {name: \"ü\", unit: day, requests_per_unit: 1}}]":     `the name "ü"`,
		deep: "NOT LIMITED",
	} {
		if _, notes := run(t, text); len(notes) == 0 || !strings.Contains(notes[0], want) {
			t.Errorf("%s\nnotes %q, want one with %q", text, notes, want)
		}
	}
}

func TestImport_RefusesWhatTheReferenceServiceRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"descriptors: []":                              "domain is missing",
		"domain: d\ndescriptors: [{value: a}]":         "no key",
		"domain: d\ndescriptors: [{key: a}, {key: a}]": "there twice",
		"domain: d\ndescriptors: [{key: a, rate_limit: {unit: fortnight, requests_per_unit: 1}}]":                          `unit is "fortnight"`,
		"domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, unlimited: true}}]":                                     "unlimited",
		"domain: d\ndescriptors: [{key: a, rate_limit: {name: x, unlimited: true, replaces: [{name: x}]}}]":                "name of the limit itself",
		"domain: d\ndescriptors: [{key: a, rate_limit: {unlimited: true, replaces: [{name: ''}]}}]":                        "has no name",
		"domain: d\ndescriptors: [{key: a, value: b, share_threshold: true}]":                                              "share_threshold",
		"domain: d\ndescriptors: [{key: a, ratelimit: {}}]":                                                                `field ratelimit not found`,
		"domain: d\ndescriptors: [{key: a, shadow_mode: maybe}]":                                                           "neither true nor false",
		"domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, requests_per_unit: -1}}]":                               "into uint32",
		"domain: d\ndescriptors: [{key: [a]}]":                                                                             "a text is wanted",
		"domain: " + strings.Repeat("d", 200) + "\ndescriptors: [{key: a, rate_limit: {unit: day, requests_per_unit: 1}}]": "200 characters",
	} {
		_, _, err := envoyimport.Import([]envoyimport.File{{Name: "config.yaml", Data: []byte(text)}}, envoyimport.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s\nerror %v, want one with %q", text, err, want)
		}
	}
}

func TestImport_TakesFilesOfOneDomainTogether(t *testing.T) {
	t.Parallel()
	const file = "domain: d\ndescriptors: [{key: %, rate_limit: {unit: day, requests_per_unit: 1}}]"
	doc, _ := run(t, strings.Replace(file, "%", "a", 1), strings.Replace(file, "%", "b", 1))
	if len(doc.Rules) != 3 {
		t.Errorf("%d rules, want one for each file and one for limits of callers", len(doc.Rules))
	}
}

func TestImport_GivesLongPatternsNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200)
	doc, _ := run(t, "domain: d\ndescriptors: [{key: a, value: "+long+"1}, {key: a, value: "+long+"2}, {key: a, value: \"\\x01\"}]")
	seen := map[string]bool{}
	for _, r := range doc.Rules {
		if seen[r.Name] || len(r.Name) > 128 {
			t.Errorf("name %q is there twice or too long", r.Name)
		}
		seen[r.Name] = true
	}
}

// FuzzImport reads what people may hand in: no panic, and what is imported can be written, read and loaded.
func FuzzImport(f *testing.F) {
	f.Add("domain: d\ndescriptors:\n  - key: a\n    value: b*\n    share_threshold: true\n    rate_limit: {unit: day, requests_per_unit: 1, name: n, replaces: [{name: m}]}\n")
	f.Add("domain: d\ndescriptors: [{key: a, shadow_mode: yes, rate_limit: {unlimited: true}, descriptors: [{key: b}]}]")
	f.Add("domain: &d x\ndescriptors: [{key: *d, value: 0777, metadata: {a: b}}]")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 {
			return
		}
		doc, _, err := envoyimport.Import([]envoyimport.File{{Name: "f", Data: []byte(text)}}, envoyimport.Options{})
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := doc.WriteTOML(&b); err != nil {
			t.Fatal(err)
		}
		if _, faults := ruledoc.Decode("imported.toml", ruledoc.TOML, b.Bytes()); len(faults) > 0 {
			t.Fatalf("%q is imported as\n%s\nwhich is refused: %v", text, b.String(), faults[0])
		}
	})
}

func TestDocs_ShowWhatIsImported(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/envoy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "\nturns\n\n```yaml\n")
	config, after, _ := strings.Cut(after, "```\n\ninto\n\n```toml\n")
	want, _, found := strings.Cut(after, "```")
	if !found {
		t.Fatal("the page about Envoy shows no import")
	}
	doc, _ := run(t, config)
	doc.Rules = doc.Rules[:1]
	var got bytes.Buffer
	if err := doc.WriteTOML(&got); err != nil {
		t.Fatal(err)
	}
	if got.String() != want {
		t.Errorf("imported:\n%s\nthe page says:\n%s", got.String(), want)
	}
}
