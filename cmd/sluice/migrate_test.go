package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/testpg"
)

func TestMigrate_CreatesTheTablesOnceAndSaysSo(t *testing.T) {
	t.Parallel()
	db := testpg.Start(t, testpg.Options{Empty: true}).Database(t)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	owner := file("url", db.OwnerURL()+"\n")
	for _, step := range []struct {
		args []string
		want string
		err  error
	}{
		{[]string{"--check", "--url", db.URL()}, "4 migrations to apply\n", errNotMigrated},
		{[]string{"--url-file", owner}, "4 migrations applied; the database is up to date\n", nil},
		{[]string{"--url-file", owner}, "0 migrations applied; the database is up to date\n", nil},
		{[]string{"--check", "--config", file("sluice.toml", "[database]\nurl = \""+db.URL()+"\"\n")}, "0 migrations to apply\n", nil},
	} {
		flags := &config.Flags{}
		cmd := newMigrate(flags)
		flags.AddTo(cmd.PersistentFlags())
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		cmd.SetArgs(step.args)
		err := cmd.ExecuteContext(t.Context())
		if !errors.Is(err, step.err) || out.String() != step.want {
			t.Errorf("sluice migrate %q: %v and %q, want %v and %q", step.args, err, out.String(), step.err, step.want)
		}
	}
}

func TestMigrate_KeepsPasswordsToItself(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"postgres://sluice_owner:se-cret@localhost/sluice":                "--url-file",
		"postgres://sluice_owner:se-cret%zz@localhost:notaport/sluice":    "cannot be read",
		"host=localhost user=sluice_owner password=se-cret dbname=sluice": "cannot be read",
	} {
		cmd := newMigrate(&config.Flags{})
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		cmd.SetArgs([]string{"--url", url})
		err := cmd.ExecuteContext(t.Context())
		var usage usageError
		if !errors.As(err, &usage) || strings.Contains(err.Error(), "se-cret") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q and no password", url, err, want)
		}
	}
}
