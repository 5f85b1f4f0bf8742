package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testpg"
)

// limited is usersRule with another limit.
func limited(n int) string {
	return strings.Replace(usersRule, "limit = 3", fmt.Sprintf("limit = %d", n), 1)
}

// wantLimit waits until new users pass n times. Each look is by a user of its own.
func wantLimit(t *testing.T, node *testnode.Node, name string, n int) {
	t.Helper()
	look := 0
	eventually(t, patience, fmt.Sprintf("%s: a limit of %d", name, n), func() error {
		look++
		if got := admitted(t, node, fmt.Sprintf("%s-%d", name, look), n+1); got != n {
			return fmt.Errorf("%d of %d pass", got, n+1)
		}
		return nil
	})
}

func TestRules_AChangedFileActsWithoutRestart(t *testing.T) {
	t.Parallel()
	node := testnode.Start(t, testnode.Options{Config: inMemory, Rules: usersRule})
	wantLimit(t, node, "before", 3)
	before := statusOf(t, node).Rules
	node.WriteRules(limited(5))
	wantLimit(t, node, "after", 5)
	if after := statusOf(t, node).Rules; after.Revision <= before.Revision || after.Loaded.Before(before.Loaded) {
		t.Errorf("the revision was %d and is %d, want a higher one", before.Revision, after.Revision)
	}
}

func TestRules_ABrokenFileKeepsTheLastGoodSetAndSaysWhyUntilItIsRepaired(t *testing.T) {
	t.Parallel()
	node := testnode.Start(t, testnode.Options{Config: inMemory, Rules: usersRule})
	before := statusOf(t, node).Rules
	node.WriteRules(usersRule + "\n[[rule]\nname = \"broken\"\n")
	eventually(t, patience, "the fault is told", func() error {
		if faults := statusOf(t, node).Rules.Faults; len(faults) == 0 {
			return fmt.Errorf("no faults in the status")
		}
		return nil
	})
	s := statusOf(t, node)
	fault := s.Rules.Faults[0]
	if filepath.Base(fault.File) != "rules.toml" || fault.Line != 7 || s.Rules.Revision != before.Revision || !s.Ready {
		t.Errorf("got %+v at revision %d, ready %t; want rules.toml:7, revision %d, ready", fault, s.Rules.Revision, s.Ready, before.Revision)
	}
	if got := metric(t, node, "sluice_rules_faults"); got != "1" {
		t.Errorf("sluice_rules_faults is %q, want 1", got)
	}
	if log := node.Log(); !strings.Contains(log, "rules not loaded") || !strings.Contains(log, "rules.toml:7") {
		t.Errorf("the log does not tell:\n%s", log)
	}
	wantLimit(t, node, "meanwhile", 3)

	node.WriteRules(limited(4))
	wantLimit(t, node, "repaired", 4)
	s = statusOf(t, node)
	if len(s.Rules.Faults) != 0 || s.Rules.Revision <= before.Revision {
		t.Errorf("repaired: got %+v at revision %d, want no faults and a revision above %d", s.Rules.Faults, s.Rules.Revision, before.Revision)
	}
	if got := metric(t, node, "sluice_rules_faults"); got != "0" {
		t.Errorf("repaired: sluice_rules_faults is %q, want 0", got)
	}
}

func TestRules_ABrokenFileDoesNotHoldUpTheDatabase(t *testing.T) {
	t.Parallel()
	pg := testpg.New(t)
	db := operator(t, pg.URL())
	put(t, db, usersOf(5))
	// The smaller limit decides: at first the file's 3, then the database's.
	inLayer := func(n int) string { return strings.Replace(limited(n), `"users"`, `"file"`, 1) + "layer = \"file\"\n" }
	node := testnode.Start(t, testnode.Options{Config: inMemory, Rules: inLayer(3), Database: pg.URL()})
	wantLimit(t, node, "both", 3)
	node.WriteRules(inLayer(9) + "\n[[rule]\nname = \"broken\"\n")
	wantFaults := func(n int) {
		t.Helper()
		eventually(t, patience, fmt.Sprintf("%d faults in status and metric", n), func() error {
			faults, counted := statusOf(t, node).Rules.Faults, metric(t, node, "sluice_rules_faults")
			if len(faults) != n || counted != fmt.Sprint(n) || n > 0 && filepath.Base(faults[0].File) != "rules.toml" {
				return fmt.Errorf("faults %+v, sluice_rules_faults %s", faults, counted)
			}
			return nil
		})
	}
	wantFaults(1)

	before := statusOf(t, node).Rules.Revision
	put(t, db, usersOf(2))
	wantLimit(t, node, "changed in the database", 2)
	put(t, db, usersOf(8))
	wantLimit(t, node, "the file as it was", 3)
	wantFaults(1)
	if after := statusOf(t, node).Rules.Revision; after <= before {
		t.Errorf("the revision was %d and is %d, want a higher one", before, after)
	}
	if got := strings.Count(node.Log(), "rules not loaded"); got != 1 {
		t.Errorf("the fault is told %d times in the log, want once:\n%s", got, node.Log())
	}

	node.WriteRules(inLayer(4))
	wantLimit(t, node, "mended", 4)
	wantFaults(0)
}

func TestRules_AFaultyRuleIsToldAndTheOthersAct(t *testing.T) {
	t.Parallel()
	node := testnode.Start(t, testnode.Options{Config: inMemory, Rules: usersRule + `
[[rule]]
name   = "faulty"
key    = ["user"]
limits = [{ limit = 0, window = "1s" }]
`})
	s := statusOf(t, node)
	if len(s.Rules.Faults) == 0 || s.Rules.Faults[0].Line < 7 || !strings.Contains(s.Rules.Faults[0].Entry, "faulty") || s.Rules.Count != 1 {
		t.Errorf("got %+v and %d rules, want the faulty one told, and one rule", s.Rules.Faults, s.Rules.Count)
	}
	if got := metric(t, node, "sluice_rules_faults"); got != "1" {
		t.Errorf("sluice_rules_faults is %q, want 1", got)
	}
	wantLimit(t, node, "others", 3)
}

func TestRules_BrokenOnesKeepANodeFromStarting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rules := filepath.Join(dir, "rules.toml")
	if err := os.WriteFile(rules, []byte("[[rule]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := testnode.Run(t, nil, "serve", "--set", "redis.url=memory", "--set", "rules.dir="+dir, "--set", "http.listen=127.0.0.1:0",
		"--set", "grpc.listen=", "--set", "admin.listen=")
	if out.Code != 1 || !strings.Contains(out.Stderr, rules+":1") {
		t.Errorf("got exit code %d, want 1 and the fault's place:\n%s", out.Code, out.Stderr)
	}
}

// TestRules_AMountedConfigMapIsFollowed does what a kubelet does: rules.d/rules.toml is a link into ..data, which is a link
// that is replaced as a whole.
func TestRules_AMountedConfigMapIsFollowed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mount := func(version, text string) {
		t.Helper()
		for _, err := range []error{
			os.Mkdir(filepath.Join(dir, version), 0o700),
			os.WriteFile(filepath.Join(dir, version, "rules.toml"), []byte(text), 0o600),
			os.Symlink(version, filepath.Join(dir, "..data_tmp")),
			os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	mount("..v1", usersRule)
	if err := os.Symlink(filepath.Join("..data", "rules.toml"), filepath.Join(dir, "rules.toml")); err != nil {
		t.Fatal(err)
	}
	node := testnode.Start(t, testnode.Options{Config: inMemory, Args: []string{"--set", "rules.dir=" + dir}})
	wantLimit(t, node, "first", 3)
	mount("..v2", limited(6))
	if err := os.RemoveAll(filepath.Join(dir, "..v1")); err != nil {
		t.Fatal(err)
	}
	wantLimit(t, node, "second", 6)
}
