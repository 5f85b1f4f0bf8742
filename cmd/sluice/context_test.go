package main

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sluicehq/sluice/internal/testnode"
)

// fakeNode answers every question with an empty list, and remembers the tokens it was shown.
type fakeNode struct {
	URL string

	mu     sync.Mutex
	tokens []string
	paths  []string
}

func startFake(t *testing.T) *fakeNode {
	t.Helper()
	f := &fakeNode{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.tokens, f.paths = append(f.tokens, r.Header.Get("Authorization")), append(f.paths, r.URL.Path)
		_, _ = w.Write([]byte(`{"items":[]}`))
	}))
	t.Cleanup(server.Close)
	f.URL = server.URL
	return f
}

// last returns what was asked last and with which token, and forgets it.
func (f *fakeNode) last(t *testing.T) (path, token string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.paths) == 0 {
		t.Fatal("it was not asked")
	}
	path, token = f.paths[len(f.paths)-1], f.tokens[len(f.tokens)-1]
	f.paths, f.tokens = nil, nil
	return path, token
}

func TestContext_ChoosesTheClusterAndItsToken(t *testing.T) {
	t.Parallel()
	home := []string{"XDG_CONFIG_HOME=" + t.TempDir()}
	a, b := startFake(t), startFake(t)
	tokenA, tokenB := writeFile(t, "a.token", "secret-a\n"), writeFile(t, "b.token", "secret-b")
	run(t, home, 0, "NAME", "context", "list")
	run(t, home, 0, "", "context", "set", "a", "--admin", a.URL, "--token-file", tokenA)
	run(t, home, 0, "", "context", "set", "b", "--admin", b.URL, "--token-file", tokenB, "--namespace", "payments")
	run(t, home, 0, "*  a", "context", "list")
	expect := func(f *fakeNode, wantPath, wantToken string) {
		t.Helper()
		if path, token := f.last(t); path != wantPath || token != wantToken {
			t.Errorf("asked %s with %q, want %s with %q", path, token, wantPath, wantToken)
		}
	}
	run(t, home, 0, "", "rules", "list")
	expect(a, "/v1/namespaces/default/rules", "Bearer secret-a")
	run(t, home, 0, "", "rules", "list", "--context", "b")
	expect(b, "/v1/namespaces/payments/rules", "Bearer secret-b")
	run(t, home, 0, "", "rules", "list", "--context", "b", "--namespace", "other/one")
	expect(b, "/v1/namespaces/other/one/rules", "Bearer secret-b")
	run(t, append(home, "SLUICE_CONTEXT=b"), 0, "", "status")
	expect(b, "/v1/status", "Bearer secret-b")
	run(t, home, 0, "", "context", "use", "b")
	run(t, home, 0, "", "nodes")
	expect(b, "/v1/nodes", "Bearer secret-b")

	// An address from elsewhere is shown no context's token, and asked about no context's namespace.
	run(t, home, 0, "", "rules", "list", "--admin", a.URL)
	expect(a, "/v1/namespaces/default/rules", "")
	run(t, append(home, "SLUICE_ADMIN="+a.URL, "SLUICE_ADMIN__TOKEN=own"), 0, "", "rules", "list")
	expect(a, "/v1/namespaces/default/rules", "Bearer own")
	run(t, append(home, "SLUICE_ADMIN="+a.URL, "SLUICE_ADMIN__TOKEN=own"), 0, "", "nodes", "--context", "b")
	expect(b, "/v1/nodes", "Bearer secret-b")
}

func TestContext_IsSetFieldByFieldAndForgotten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	home := []string{"XDG_CONFIG_HOME=" + dir}
	run(t, home, 0, "", "context", "set", "prod", "--admin", "https://prod:9090", "--server", "https://prod", "--token-file", "prod.token")
	run(t, home, 0, "", "context", "set", "prod", "--server", "", "--namespace", "payments")
	out := run(t, home, 0, `"namespace":"payments"`, "context", "list", "-o", "json")
	if strings.Contains(out.Stdout, `"server"`) || !strings.Contains(out.Stdout, `"admin":"https://prod:9090"`) || strings.Contains(out.Stdout, `"token_file":"prod.token"`) {
		t.Errorf("got %s, want the server gone, the rest kept, and a whole path", out.Stdout)
	}
	file := filepath.Join(dir, "sluice", "config.toml")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != fs.FileMode(0o600) {
		t.Errorf("%v, %v, want a file that others cannot read", info, err)
	}
	run(t, home, exitError, "--server URL", "check", "user=a")
	run(t, home, exitUsage, "there are prod", "nodes", "--context", "test")
	run(t, home, exitError, "there are prod", "context", "use", "test")
	run(t, home, exitUsage, "leave one out", "nodes", "--context", "prod", "--admin", "http://127.0.0.1:1")
	run(t, home, 0, "", "context", "delete", "prod")
	lacks(t, run(t, home, 0, "NAME", "context", "list"), "prod")
	run(t, home, exitUsage, "context set", "nodes", "--context", "prod")
	if err := os.WriteFile(file, []byte("nonsense = \"a\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, home, exitError, "nonsense", "context", "list")
	run(t, home, exitError, "nonsense", "nodes")
}

func TestContext_NamesAreCompleted(t *testing.T) {
	t.Parallel()
	home := []string{"XDG_CONFIG_HOME=" + t.TempDir()}
	run(t, home, 0, "", "context", "set", "staging", "--admin", "http://127.0.0.1:1")
	for _, args := range [][]string{{"context", "use", ""}, {"nodes", "--context", ""}} {
		if out := testnode.Run(t, home, append([]string{"__complete"}, args...)...); !strings.Contains(out.Stdout, "staging\n") {
			t.Errorf("%q: got %q", args, out.Stdout)
		}
	}
}
