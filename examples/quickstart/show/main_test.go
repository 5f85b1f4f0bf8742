package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestShow_EndsWell(t *testing.T) {
	t.Parallel()
	if err := show(t.Context(), t.Output(), t); err != nil {
		t.Error(err)
	}
}

func TestCountLines_RefusesWhatBreaksThePromise(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{
		"too long":      "package main\n" + strings.Repeat("\n// a line\n", maxLines),
		"not formatted": "package  main\n",
		"not Go":        "package\n",
	} {
		path := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		if n, err := countLines(path); err == nil {
			t.Errorf("%s: %d lines, want an error", name, n)
		}
	}
}
