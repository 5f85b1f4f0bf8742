package gateway_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/gateway"
)

func TestDocs_ShowAConfigurationThatWorks(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```toml\n")
	text, _, closed := strings.Cut(rest, "```\n")
	if !found || !closed {
		t.Fatal("docs/gateway.md shows no TOML")
	}
	file := filepath.Join(t.TempDir(), "sluice.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := config.Load(config.Options{Path: file, Environ: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gateway.New(loaded.Config.Gateway, overloaded{}, nobody{}, gateway.Options{}); err != nil {
		t.Fatal(err)
	}
}
