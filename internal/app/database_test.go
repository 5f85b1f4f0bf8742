package app_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testpg"
)

// checkOf is the line of a check in /readyz?verbose, empty where there is none.
func checkOf(t *testing.T, n *testnode.Node, name string) string {
	t.Helper()
	for line := range strings.Lines(mustRequest(t, http.MethodGet, "http://"+n.Admin+"/readyz?verbose", "").body) {
		if len(line) > 4 && strings.HasPrefix(line[4:], name+":") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// wantDatabase waits until health, status and metrics agree on the database.
func wantDatabase(t *testing.T, n *testnode.Node, state, up string) {
	t.Helper()
	mark := map[string]string{"ok": "[+]", "degraded": "[~]"}[state]
	eventually(t, patience, "the database is "+state, func() error {
		told := ""
		for _, c := range statusOf(t, n).Checks {
			if c.Name == "database" {
				told = c.State
			}
		}
		check, gauge := checkOf(t, n, "database"), metric(t, n, "sluice_database_up")
		if !strings.HasPrefix(check, mark+" database: "+state) || told != state || gauge != up {
			return fmt.Errorf("health %q, status %q, sluice_database_up %q", check, told, gauge)
		}
		return nil
	})
}

func TestDatabase_LosingItDegradesAndDoesNotMakeANodeUnready(t *testing.T) {
	t.Parallel()
	pg := testpg.Start(t, testpg.Options{})
	dbURL := pg.Database(t).URL()
	put(t, operator(t, dbURL), usersOf(2))
	n := testnode.Start(t, testnode.Options{Config: inMemory, Database: dbURL})
	wantDatabase(t, n, "ok", "1")
	pg.Kill()
	wantDatabase(t, n, "degraded", "0")
	if err := notReady(t, n); err != nil {
		t.Error(err)
	}
	if got := admitted(t, n, "u", 4); got != 2 {
		t.Errorf("%d admitted, want 2", got)
	}
	if log := n.Log(); !strings.Contains(log, "the database does not answer") {
		t.Errorf("the log does not tell:\n%s", log)
	}
	if line := checkOf(t, n, "database"); strings.Contains(line, pg.Addr()) || strings.Contains(line, testpg.App) {
		t.Errorf("health tells everybody %q", line)
	}
	pg.Restart()
	wantDatabase(t, n, "ok", "1")
}

func TestDatabase_WithoutOneNobodySpeaksOfIt(t *testing.T) {
	t.Parallel()
	n := testnode.Start(t, testnode.Options{Config: inMemory, Rules: usersRule})
	if check, gauge := checkOf(t, n, "database"), metric(t, n, "sluice_database_up"); check != "" || gauge != "" {
		t.Errorf("health %q, metric %q, want neither", check, gauge)
	}
}

func TestMetrics_OfTheDatabaseAreThoseOfTheOperationsPage(t *testing.T) {
	t.Parallel()
	n := testnode.Start(t, testnode.Options{Config: inMemory, Rules: usersRule, Database: testpg.New(t).URL()})
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`\bsluice_(directory|database)_[a-z_]+[a-z]`)
	names := func(text string) map[string]bool {
		found := map[string]bool{}
		for _, s := range name.FindAllString(text, -1) {
			found[s] = true
		}
		return found
	}
	told, there := names(string(page)), names(mustRequest(t, http.MethodGet, "http://"+n.Admin+"/metrics", "").body)
	for s := range told {
		if !there[s] {
			t.Errorf("docs/operations.md tells of %s, which no node has", s)
		}
	}
	for s := range there {
		if !told[s] {
			t.Errorf("%s is not in docs/operations.md", s)
		}
	}
}

func TestDatabase_ItsCertificateIsCheckedByTheCAFile(t *testing.T) {
	t.Parallel()
	pg := testpg.Start(t, testpg.Options{TLS: true})
	d := pg.Database(t)
	put(t, operator(t, d.URL()), usersOf(2))
	u, err := url.Parse(d.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.RawQuery = "sslmode=verify-full" // no certificate
	start := func(caFile string) *testnode.Node {
		return testnode.Start(t, testnode.Options{Config: fmt.Sprintf("%s[database]\nca_file = %q\n", inMemory, caFile), Database: u.String()})
	}
	if got := admitted(t, start(pg.CAFile()), "u", 4); got != 2 {
		t.Errorf("%d admitted, want 2 by the rules of the database", got)
	}
	n := start(testnode.NewAuthority(t).File)
	if n.Ready(t.Context()) {
		t.Error("ready, with a server that somebody else vouches for")
	}
	if log := n.Log(); !strings.Contains(log, "set database.ca_file") {
		t.Errorf("the log does not say what to do:\n%s", log)
	}
}
