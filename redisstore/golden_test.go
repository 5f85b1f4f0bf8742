package redisstore_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/redisstore"
)

var update = flag.Bool("update", false, "write the composed scripts to testdata instead of comparing them")

// The composed scripts stand in testdata, so that people and reviews read what runs.
func TestScripts_AreTheTextsInTestdata(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, s := range redisstore.Scripts() {
		names[s.Name+".lua"] = true
		path := filepath.Join("testdata", s.Name+".lua")
		if *update {
			if err := os.MkdirAll("testdata", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(s.Text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("%v: run go test ./redisstore -run %s -update", err, t.Name())
		}
		if s.Text != string(want) {
			t.Errorf("%s composes to another text: read the difference after go test ./redisstore -run %s -update\ngot:\n%s\nwant:\n%s", path, t.Name(), s.Text, want)
		}
	}
	files, err := filepath.Glob("testdata/*.lua")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !names[filepath.Base(f)] {
			t.Errorf("%s belongs to no script: delete it", f)
		}
	}
}

func TestScripts_LeaveNoMarkOrPlaceholder(t *testing.T) {
	t.Parallel()
	leftover := regexp.MustCompile(`--\[\[|\{[a-z]+\}`)
	for _, s := range redisstore.Scripts() {
		// reply={us} is the one brace that is Lua.
		text := strings.ReplaceAll(s.Text, "{us}", "")
		if found := leftover.FindString(text); found != "" {
			t.Errorf("script %s still contains %q:\n%s", s.Name, found, s.Text)
		}
	}
}

func TestNewScript_NamesATextAsRedisDoes(t *testing.T) {
	t.Parallel()
	// SCRIPT LOAD "return 1" replies this on any Redis.
	if got, want := redisstore.NewScript("one", "return 1").SHA, "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"; got != want {
		t.Errorf("got SHA %s, want %s", got, want)
	}
}
