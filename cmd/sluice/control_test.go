package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/ruledoc"
	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testpg"
	"github.com/sluicehq/sluice/internal/testredis"
)

// startCluster runs a node with a database, and returns the variables by which commands find it.
func startCluster(t *testing.T) []string {
	t.Helper()
	redis, db := testredis.Single(t, testredis.Options{}), testpg.New(t)
	node := testnode.Start(t, testnode.Options{Config: fmt.Sprintf(
		"[redis]\nurl = \"redis://%s\"\n[limiter]\ntimeout = \"5s\"\n[shutdown]\ngrace = \"10ms\"\n[database]\nurl = %q\n[control]\npepper = %q\n",
		redis.Addr(), db.URL(), strings.Repeat("pepper-", 6))})
	return []string{"SLUICE_SERVER=http://" + node.HTTP, "SLUICE_ADMIN=http://" + node.Admin, "SLUICE_ADMIN__TOKEN=" + testnode.AdminToken, "NO_COLOR=1"}
}

// writeFile writes a file of the test's own and returns its name.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// lacks fails the test when a text is there.
func lacks(t *testing.T, out testnode.Output, text string) {
	t.Helper()
	if strings.Contains(out.Stdout+out.Stderr, text) {
		t.Errorf("%q is there:\n%s%s", text, out.Stdout, out.Stderr)
	}
}

const twoRules = `
[[rule]]
name   = "everything"
key    = ["user"]
limits = [{ limit = 5, window = "60m" }]

[[rule]]
name   = "search"
match  = { routes = ["/search"] }
key    = ["user", "route"]
limits = [{ algorithm = "sliding_window", limit = 2, window = "1h" }]
`

func TestRulesApply_ShowsADiffAndMakesItSo(t *testing.T) {
	t.Parallel()
	env := startCluster(t)
	file := writeFile(t, "rules.toml", twoRules)
	diff := run(t, env, 0, "create rule search in namespace default", "rules", "diff", "-f", file)
	if !strings.Contains(diff.Stdout, "+ name = \"search\"") {
		t.Errorf("the rule is not shown:\n%s", diff.Stdout)
	}
	run(t, env, exitError, "not those in the files", "rules", "diff", "-f", file, "--exit-code")
	run(t, env, exitUsage, "--yes", "rules", "apply", "-f", file)
	run(t, env, 0, "create rule search", "rules", "apply", "-f", file, "--dry-run")
	run(t, env, 0, "2 created, 0 updated, 0 deleted", "rules", "apply", "-f", file, "--yes", "--reason", "first")
	run(t, env, 0, "nothing to change", "rules", "apply", "-f", file)
	run(t, env, 0, "nothing to change", "rules", "diff", "-f", file, "--exit-code")

	// The same written otherwise is no change; another limit is one.
	changed := writeFile(t, "rules.toml", strings.Replace(strings.Replace(twoRules, `"60m"`, `"1h"`, 1), "limit = 2", "limit = 3", 1))
	diff = run(t, env, 0, "update rule search", "rules", "diff", "-f", changed)
	lacks(t, diff, "everything")
	if !strings.Contains(diff.Stdout, `- limits = [{ algorithm = "sliding_window", limit = 2`) || !strings.Contains(diff.Stdout, `+ limits = [{ algorithm = "sliding_window", limit = 3`) {
		t.Errorf("the changed line is not shown:\n%s", diff.Stdout)
	}
	run(t, append(env, "NO_COLOR=", "CLICOLOR_FORCE=1"), 0, "\x1b[32m+ limits", "rules", "diff", "-f", changed)
	run(t, env, 0, `"updated":["search"]`, "rules", "apply", "-f", changed, "-y", "--reason", "more", "-o", "json")

	// What no file names stays, unless it is pruned.
	alone := writeFile(t, "rules.toml", twoRules[strings.LastIndex(twoRules, "[[rule]]"):])
	lacks(t, run(t, env, 0, "update rule search", "rules", "diff", "-f", alone), "delete")
	run(t, env, 0, "delete rule everything", "rules", "diff", "-f", alone, "--prune")
	run(t, env, 0, "1 updated, 1 deleted", "rules", "apply", "-f", alone, "--prune", "-y", "--reason", "fewer")

	run(t, env, 0, "fewer", "rules", "history")
	out := run(t, env, 0, "more", "rules", "history", "search", "-o", "json")
	var history struct {
		Items []struct {
			Revision int64
			Reason   string
		}
	}
	if err := json.Unmarshal([]byte(out.Stdout), &history); err != nil || len(history.Items) != 3 {
		t.Fatalf("got %d changes, %v, want 3:\n%s", len(history.Items), err, out.Stdout)
	}
	former := fmt.Sprint(history.Items[1].Revision)
	run(t, env, 0, "create rule everything", "rules", "rollback", former, "--dry-run")
	run(t, env, exitUsage, "--yes", "rules", "rollback", former)
	run(t, env, 0, "1 created, 1 updated, 0 deleted", "rules", "rollback", former, "--yes", "--reason", "it was better")
	run(t, env, 0, "nothing to change", "rules", "diff", "-f", changed, "--exit-code")
	run(t, env, exitError, "revision", "rules", "rollback", "999999", "--yes")
}

func TestRulesGetAndList_WriteFilesThatApplyTakesBack(t *testing.T) {
	t.Parallel()
	env := startCluster(t)
	run(t, env, 0, "2 created", "rules", "apply", "-f", writeFile(t, "rules.toml", twoRules), "--yes")
	for _, args := range [][]string{{"rules", "get", "search"}, {"rules", "list", "-o", "toml"}} {
		out := run(t, env, 0, "[[rule]]", args...)
		if parsed, faults := ruledoc.Decode("a.toml", ruledoc.TOML, []byte(out.Stdout)); len(faults) > 0 || len(parsed.Document.Rules) == 0 {
			t.Errorf("%q: %v in\n%s", args, faults, out.Stdout)
		}
		run(t, env, 0, "nothing to change", "rules", "diff", "-f", writeFile(t, "rules.toml", out.Stdout))
	}
	run(t, env, 0, "2 per 1h", "rules", "list")
	run(t, env, 0, "body:\n", "rules", "get", "search", "-o", "yaml")
	run(t, env, 0, `"version":`, "rules", "list", "-o", "json")
	run(t, env, 0, "raise --limit", "rules", "list", "--limit", "1")
	run(t, env, exitError, "not found", "rules", "get", "nonsense")
	run(t, env, 0, "before:", "rules", "delete", "search", "--dry-run")
	run(t, env, 0, "deleted rule search", "rules", "delete", "search", "--reason", "over")
	lacks(t, run(t, env, 0, "everything", "rules", "list"), "search")
}

func TestRulesApply_SendsNothingWhenARuleIsFaulty(t *testing.T) {
	t.Parallel()
	env := startCluster(t)
	for text, want := range map[string]string{
		"[[rule]]\nname = \"a\"\nlimits = [{ limit = 0, window = \"1h\" }]\n": "limit is 0",
		"[[rule]]\nname = \"a\"\nprioritty = 1\n":                             "prioritty",
		"[[rule]\n": "rules.toml:1:",
		twoRules + "[[rule]]\nname = \"search\"\nnamespace = \"default\"\naction = \"block\"\n": "search",
	} {
		run(t, env, exitError, want, "rules", "apply", "-f", writeFile(t, "rules.toml", text), "--yes")
	}
	lacks(t, run(t, env, 0, "NAME", "rules", "list"), "everything")
	run(t, env, exitUsage, "--file", "rules", "apply", "--yes")
	run(t, env, exitError, "no such file", "rules", "apply", "-f", "/nonexistent", "--yes")
}

func TestRulesApply_IsForNamespacesThatExist(t *testing.T) {
	t.Parallel()
	env := startCluster(t)
	apply := []string{"rules", "apply", "-n", "payments", "-f", writeFile(t, "rules.toml", twoRules), "--yes"}
	run(t, env, exitError, "no such namespace", apply...)
	run(t, env, 0, "made namespace payments", "namespaces", "create", "payments")
	run(t, env, 0, "2 created", apply...)
	run(t, env, 0, "payments", "namespaces", "list")
	run(t, env, 0, "search", "rules", "list", "-n", "payments")
	lacks(t, run(t, env, 0, "NAME", "rules", "list"), "search")
	both := twoRules + "[[rule]]\nname = \"closed\"\nnamespace = \"default\"\naction = \"block\"\n"
	run(t, env, 0, "namespace default is at revision", "rules", "apply", "-n", "payments", "-f", writeFile(t, "rules.toml", both), "--yes")
}

func TestRulesApply_AsksFirst(t *testing.T) {
	t.Parallel()
	env := startCluster(t)
	file := writeFile(t, "rules.toml", twoRules)
	for _, c := range []struct{ answer, want string }{
		{"n\n", "nothing was changed"}, {"\n", "nothing was changed"}, {"yes\n", "2 created"},
	} {
		cmd := exec.CommandContext(t.Context(), testnode.Binary(t), "rules", "apply", "-f", file)
		cmd.Env, cmd.Stdin = append(os.Environ(), env...), strings.NewReader(c.answer)
		out, _ := cmd.CombinedOutput()
		if !strings.Contains(string(out), "Make 2 changes") || !strings.Contains(string(out), c.want) {
			t.Errorf("answered %q: got %s, want %q", c.answer, out, c.want)
		}
	}
}

func TestKeys_AreShownOnceRotatedAndRevoked(t *testing.T) {
	t.Parallel()
	env := startCluster(t)
	out := run(t, env, 0, "only time", "keys", "create", "--owner", "u_42", "--name", "backup", "--expires", "90d")
	secret := strings.TrimSpace(out.Stdout)
	parts := strings.Split(secret, "_")
	if len(parts) < 4 || parts[0] != "slc" || strings.Contains(out.Stderr, parts[2]) {
		t.Fatalf("got %q on standard output, want the key alone, and nothing of it elsewhere:\n%s", secret, out.Stderr)
	}
	list := run(t, env, 0, "backup", "keys", "list", "--owner", "u_42")
	lacks(t, list, secret)
	id := regexp.MustCompile(`(?m)^(\S+)\s+backup`).FindStringSubmatch(list.Stdout)[1]
	other := run(t, env, 0, "", "keys", "rotate", id, "--overlap", "1h")
	if strings.TrimSpace(other.Stdout) == secret || !strings.HasPrefix(other.Stdout, "slc_") {
		t.Errorf("got %q, want another key", other.Stdout)
	}
	run(t, env, 0, "rotating until", "keys", "list")
	run(t, env, 0, "revoked API key", "keys", "revoke", id, "--reason", "leaked")
	run(t, env, 0, "revoked", "keys", "list", "-o", "yaml")
	lacks(t, run(t, env, 0, "ID", "keys", "list", "--owner", "nobody"), "backup")
	run(t, env, exitUsage, "--owner", "keys", "create")
	run(t, env, exitUsage, "--overlap", "keys", "rotate", id, "--overlap", "soon")
	run(t, env, exitError, "not found", "keys", "revoke", "nonsense")
}

func TestTokens_MayWhatTheirGrantsSay(t *testing.T) {
	t.Parallel()
	env := startCluster(t)
	out := run(t, env, 0, "only time", "tokens", "create", "reader", "--grant", "*:viewer", "--expires", "1d")
	viewer := append(env[:len(env):len(env)], "SLUICE_ADMIN__TOKEN="+strings.TrimSpace(out.Stdout))
	run(t, viewer, 0, "NAME", "rules", "list")
	run(t, viewer, exitError, "role", "rules", "apply", "-f", writeFile(t, "rules.toml", twoRules), "--yes")
	run(t, viewer, exitError, "role", "tokens", "list")
	list := run(t, env, 0, "*:viewer", "tokens", "list")
	id := regexp.MustCompile(`(?m)^(\S+)\s+reader`).FindStringSubmatch(list.Stdout)[1]
	run(t, env, 0, "revoked token", "tokens", "revoke", id)
	for deadline := time.Now().Add(20 * time.Second); testnode.Run(t, viewer, "rules", "list").Code == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the token is still taken")
		}
	}
	run(t, env, exitUsage, "--grant", "tokens", "create", "nobody")
	run(t, env, exitUsage, "viewer, operator or admin", "tokens", "create", "x", "--grant", "default:owner")
}

func TestSubjects_AreOnTheTierThatWasSet(t *testing.T) {
	t.Parallel()
	env := startCluster(t)
	tier := writeFile(t, "pro.yaml", "name: pro\ndisplay_name: Pro\nprice: 29 EUR a month\ngroups:\n  - name: search\n    routes: [/search]\n    limits: [{limit: 1000, window: 1h}]\n")
	run(t, env, 0, "set tier pro", "tiers", "set", "-f", tier)
	run(t, env, 0, "set tier pro", "tiers", "set", "-f", tier, "--reason", "again")
	run(t, env, 0, "search: 1000 per 1h", "tiers", "list")
	run(t, env, 0, "display_name: Pro", "tiers", "get", "pro")
	run(t, env, 0, "is on tier pro", "subjects", "set", "user=u/4 2", "tier=pro", "--reason", "upgraded")
	run(t, env, 0, "tier: pro", "subjects", "get", "user=u/4 2")
	run(t, env, 0, "deleted", "subjects", "delete", "user=u/4 2")
	run(t, env, exitError, "not found", "subjects", "get", "user=u/4 2")
	run(t, env, 0, "deleted tier pro", "tiers", "delete", "pro")
	run(t, env, exitUsage, "no subject", "subjects", "get", "ip=192.0.2.1")
	run(t, env, exitError, "no name", "tiers", "set", "-f", writeFile(t, "a.yaml", "display_name: Pro\n"))
	run(t, env, exitError, "unknown field", "tiers", "set", "-f", writeFile(t, "a.yaml", "name: pro\nprise: 3\n"))
}

func TestOverridesBlocksAndExemptions_AreSetListedAndDeleted(t *testing.T) {
	t.Parallel()
	env := startCluster(t)
	run(t, env, 0, "2 created", "rules", "apply", "-f", writeFile(t, "rules.toml", twoRules), "--yes")
	run(t, env, 0, "has 500 per 1h in rule search", "overrides", "set", "user=u_42", "--rule", "search", "--limit", "500 per 1h", "--valid-until", "7d", "--reason", "launch")
	list := run(t, env, 0, "500 per 1h", "overrides", "list", "--subject", "user=u_42", "--rule", "search")
	id := regexp.MustCompile(`(?m)^(\S+)\s+default`).FindStringSubmatch(list.Stdout)[1]
	run(t, env, 0, "has token_bucket 5 per 1s burst 9", "overrides", "set", "user=u_42", "--id", id, "--rule", "search", "--limit", "token_bucket 5 per 1s burst 9", "--reason", "calmer")
	lacks(t, run(t, env, 0, "burst 9", "overrides", "list"), "500")
	run(t, env, 0, "deleted override", "overrides", "delete", id)
	lacks(t, run(t, env, 0, "ID", "overrides", "list"), "u_42")

	for _, noun := range []string{"blocks", "exemptions"} {
		for _, who := range []string{"user=mallory", "ip=203.0.113.0/24", "ip=2001:db8::7"} {
			run(t, env, 0, who, noun, "set", who, "--reason", "because")
			run(t, env, 0, who, noun, "set", who, "--reason", "because of that")
		}
		run(t, env, 0, "because of that", noun, "list")
		run(t, env, 0, "subject:", noun, "list", "-o", "yaml")
		run(t, env, 0, "203.0.113.0/24", noun, "delete", "ip=203.0.113.0/24")
		lacks(t, run(t, env, 0, "mallory", noun, "list"), "203.0.113")
		run(t, env, exitUsage, "--reason", noun, "set", "user=a")
		run(t, env, exitUsage, "bits beyond", noun, "set", "ip=203.0.113.7/24", "--reason", "x")
	}
	run(t, env, 0, "blocked", "blocks", "set", "user=eve", "--reason", "abuse", "--until", "24h")
	run(t, env, exitUsage, "no time", "blocks", "set", "user=eve", "--reason", "abuse", "--until", "tomorrow")
}

func TestNodes_ShowsWhatEachServes(t *testing.T) {
	t.Parallel()
	env := startCluster(t)
	for deadline := time.Now().Add(20 * time.Second); ; { // the first heartbeat comes soon
		out := run(t, env, 0, "REVISION", "nodes")
		if strings.Count(out.Stdout, "\n") > 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no node:\n%s", out.Stdout)
		}
	}
	run(t, env, 0, `"items":[{`, "nodes", "-o", "json")
}

func TestControl_TellsThatANodeHasNoDatabase(t *testing.T) {
	t.Parallel()
	_, env := startNode(t)
	run(t, env, exitError, "database.url", "rules", "list")
}
