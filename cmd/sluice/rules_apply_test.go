package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/sluicehq/sluice/internal/testnode"
)

// operator is somebody else at work on a cluster. He asks it himself: a command takes long to start.
type operator struct {
	t     *testing.T
	admin string
}

func operatorOf(t *testing.T, env []string) operator {
	t.Helper()
	return operator{t, strings.TrimPrefix(env[1], "SLUICE_ADMIN=")}
}

// do asks the admin API, and returns the answer. It is for any goroutine.
func (o operator) do(method, path, body string) string {
	o.t.Helper()
	r, err := http.NewRequestWithContext(o.t.Context(), method, o.admin+path, strings.NewReader(body))
	if err != nil {
		o.t.Error(err)
		return ""
	}
	r.Header.Set("Authorization", "Bearer "+testnode.AdminToken)
	if method != http.MethodGet && method != http.MethodPost {
		r.Header.Set("If-Match", "*")
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		o.t.Error(err)
		return ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= http.StatusBadRequest {
		o.t.Errorf("%s %s: %d %s, %v", method, path, resp.StatusCode, text, err)
	}
	return string(text)
}

// block writes a rule that refuses everything.
func (o operator) block(namespace, rule string) {
	o.t.Helper()
	o.do(http.MethodPut, path("namespaces", namespace, "rules", rule), `{"action":"block"}`)
}

// meddled returns the variables by which commands find the same cluster, where somebody else is faster: do is done once, when the first
// POST that changes something is on its way.
func meddled(t *testing.T, env []string, do func()) []string {
	t.Helper()
	target, err := url.Parse(operatorOf(t, env).admin)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	var once sync.Once
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && !r.URL.Query().Has("dry_run") {
			once.Do(do)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return append(env[:len(env):len(env)], "SLUICE_ADMIN="+s.URL)
}

func TestRulesApply_DoesNotOverwriteWhatSomebodyElseChanged(t *testing.T) {
	t.Parallel()
	env := startCluster(t)
	other := operatorOf(t, env)
	file := writeFile(t, "rules.toml", "[[rule]]\nname = \"same\"\naction = \"block\"\n[[rule]]\nname = \"new\"\naction = \"block\"\n")
	for namespace, c := range map[string]struct {
		between func(namespace string)
		prune   bool
		want    string // empty: it is done
	}{
		"changed": {func(ns string) {
			other.do(http.MethodPut, path("namespaces", ns, "rules", "same"), `{"action":"allow"}`)
		}, false, `rule "same" was changed by`},
		"added":            {func(ns string) { other.block(ns, "new") }, false, `rule "new" was added by`},
		"added where all":  {func(ns string) { other.block(ns, "other") }, true, `rule "other" was added by`},
		"not concerned":    {func(ns string) { other.do(http.MethodDelete, path("namespaces", ns, "rules", "old"), "") }, false, ""},
		"in another place": {func(string) { other.block("default", "same") }, true, ""},
	} {
		other.do(http.MethodPost, "/v1/namespaces", fmt.Sprintf(`{"name":%q}`, namespace))
		other.block(namespace, "same")
		other.block(namespace, "old")
		left := "" // how the other one left them
		others := meddled(t, env, func() {
			c.between(namespace)
			left = other.do(http.MethodGet, path("namespaces", namespace, "rules"), "")
		})
		apply := []string{"rules", "apply", "--yes", "-n", namespace, "-f", file, fmt.Sprintf("--prune=%t", c.prune)}
		if c.want == "" {
			run(t, others, 0, "1 created, 0 updated", apply...)
			continue
		}
		if out := run(t, others, exitError, c.want, apply...); !strings.Contains(out.Stderr, "run the command again") {
			t.Errorf("%s: it does not say what to do:\n%s", namespace, out.Stderr)
		}
		if now := other.do(http.MethodGet, path("namespaces", namespace, "rules"), ""); now != left {
			t.Errorf("%s: the rules are\n%s\nwant them as the other one left them:\n%s", namespace, now, left)
		}
	}
	run(t, env, 0, "1 created, 1 updated", "rules", "apply", "--yes", "-n", "changed", "-f", file) // again, with the new difference
}

func TestRulesRollback_DoesNotUndoWhatNobodyWasShown(t *testing.T) {
	t.Parallel()
	env := startCluster(t)
	other := operatorOf(t, env)
	other.block("default", "first")
	other.block("default", "second")
	others := meddled(t, env, func() { other.block("default", "third") })
	rollback := []string{"rules", "rollback", "1", "--yes"}
	if out := run(t, others, exitError, `rule "third" was added by`, rollback...); !strings.Contains(out.Stderr, "run the command again") {
		t.Errorf("it does not say what to do:\n%s", out.Stderr)
	}
	if rules := other.do(http.MethodGet, path("namespaces", "default", "rules"), ""); !strings.Contains(rules, "second") || !strings.Contains(rules, "third") {
		t.Errorf("something was undone: %s", rules)
	}
	run(t, others, 0, "0 created, 0 updated, 2 deleted", rollback...)
}

func TestRulesApply_AChangeWhileItAsksStopsAllNamespaces(t *testing.T) {
	t.Parallel()
	env := startCluster(t)
	other := operatorOf(t, env)
	other.do(http.MethodPost, "/v1/namespaces", `{"name":"second"}`)
	file := writeFile(t, "rules.toml", twoRules+"[[rule]]\nname = \"closed\"\nnamespace = \"second\"\naction = \"block\"\n")
	cmd := exec.CommandContext(t.Context(), testnode.Binary(t), "rules", "apply", "-f", file)
	cmd.Env = append(os.Environ(), env...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewReader(stderr)
	if asked, err := said.ReadString(']'); err != nil || !strings.Contains(asked, "Make 3 changes") {
		t.Fatalf("it says %q, %v, want a question", asked, err)
	}
	other.block("second", "closed")
	if _, err := stdin.Write([]byte("yes\n")); err != nil {
		t.Fatal(err)
	}
	var rest strings.Builder
	if _, err := said.WriteTo(&rest); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != exitError || !strings.Contains(rest.String(), `rule "closed" was added by`) {
		t.Errorf("it ends with %v and says %q, want exit code 1 and the rule", err, rest.String())
	}
	if first := other.do(http.MethodGet, path("namespaces", "default", "rules"), ""); strings.Contains(first, "search") {
		t.Errorf("the first namespace was changed: %s", first)
	}
}
