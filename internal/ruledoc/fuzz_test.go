package ruledoc

import (
	"os"
	"strings"
	"testing"
)

// seeds are the files of the tests, and texts that other readers have stumbled over.
func seed(f *testing.F, file string, texts ...string) {
	f.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(faulty))
	f.Add([]byte{})
	for _, text := range texts {
		f.Add([]byte(text))
		f.Add([]byte(strings.Repeat(text, 40)))
	}
}

// fuzz decodes a text; whatever is in it, the result can be merged and compiled, and the faults can be told.
func fuzz(f *testing.F, format Format) {
	f.Helper()
	f.Fuzz(func(t *testing.T, data []byte) {
		p, faults := Decode("fuzz", format, data)
		if p == nil && len(faults) == 0 {
			t.Fatal("neither a document nor a fault")
		}
		m, merged := Merge(p)
		_, _, compiled := m.Compile(nil)
		for _, list := range [][]Fault{faults, merged, compiled} {
			for _, fault := range list {
				if fault.Quote() == "" || fault.Line < 0 {
					t.Fatalf("a fault that tells nothing: %+v", fault)
				}
			}
		}
	})
}

func FuzzDecodeTOML(f *testing.F) {
	seed(f, "testdata/all.toml", "[[rule]]\n", "a.b = 1\n", "a = [[", "[a]\n[a]\n", "a={b={", "'''", "\"\"\"\\", "1979-05-27", "[rule]\nx=1\n[[rule]]\n",
		"rule = [1]\n[[rule]]\n", "rule = []\n[rule.a]\n", "[[rule]]\n[rule.match]\n[rule.match.attributes]\na.b='c'\n", "[[rule.x]]\n[[rule]]\n")
	fuzz(f, TOML)
}

func FuzzDecodeYAML(f *testing.F) {
	seed(f, "testdata/all.yaml", "- ", "? ", ": ", "&a ", "*a", "!a ", "[", "{", "|\n", ">\n", "%a ", "---\n", "\"", "'", "#", "a: &a [*a]\n", "rules: [{name: a}]\n", "<<: *a", "\t")
	fuzz(f, YAML)
}

func FuzzDecodeJSON(f *testing.F) {
	seed(f, "testdata/all.toml", `{"rules":[{"name":"a","limits":[{"limit":1e3,"window":"1s"}]}]}`, "[", `{"a":`, `"\ud800"`, "nul", "1e999")
	fuzz(f, JSON)
}
