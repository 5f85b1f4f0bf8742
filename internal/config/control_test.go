package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLoad_ChecksDatabaseAndControl(t *testing.T) {
	t.Parallel()
	const database = "[database]\nurl = \"postgres://u@127.0.0.1/db\"\n"
	for name, c := range map[string]struct {
		text string
		want string // in the fault or warning; empty: neither
	}{
		"a database":              {database, ""},
		"none":                    {"", ""},
		"not PostgreSQL":          {"[database]\nurl = \"mysql://u:hunter2@h/db\"\n", "database.url: is not the URL of a PostgreSQL"},
		"no connections":          {database + "max_conns = 0\n", "database.max_conns: is 0"},
		"password in plain text":  {"[database]\nurl = \"postgres://u:hunter2@db.example.com/db\"\n", "may be sent in plain text"},
		"password encrypted":      {"[database]\nurl = \"postgres://u:hunter2@db.example.com/db?sslmode=verify-full\"\n", ""},
		"snapshot without one":    {"[control]\nsnapshot_file = \"x\"\n", "control.snapshot_file: is used with a database only"},
		"short pepper":            {"[control]\npepper = \"hunter2\"\n", "control.pepper: has 7 characters"},
		"sign-in without issuer":  {database + "[control.oidc]\nclient_id = \"c\"\n", "control.oidc.issuer: is missing"},
		"sign-in in plain text":   {database + "[control.oidc]\nissuer = \"http://login.example.com\"\nclient_id = \"c\"\nredirect_url = \"https://a/b\"\n", "control.oidc.issuer: is not an https URL"},
		"sign-in without a name":  {database + "[control.oidc]\nissuer = \"https://login.example.com\"\nredirect_url = \"https://a/b\"\n", "control.oidc.client_id: is missing"},
		"sign-in without its way": {database + "[control.oidc]\nissuer = \"https://login.example.com\"\nclient_id = \"c\"\n", "control.oidc.redirect_url"},
		"sign-in":                 {database + "[control.oidc]\nissuer = \"https://login.example.com\"\nclient_id = \"c\"\nredirect_url = \"https://a/b\"\n", ""},
	} {
		path := filepath.Join(t.TempDir(), "sluice.toml")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		loaded, err := Load(Options{Path: path, Environ: []string{}})
		var told string
		if err != nil {
			told = err.Error()
		} else {
			told = strings.Join(loaded.Warnings, "\n")
		}
		if (told == "") != (c.want == "") || !strings.Contains(told, c.want) {
			t.Errorf("%s: told %q, want %q", name, told, c.want)
		}
		if strings.Contains(told, "hunter2") {
			t.Errorf("%s: the secret is told: %s", name, told)
		}
	}
}
