package app_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testredis"
)

// planted are secrets that must turn up nowhere.
var planted = map[string]string{
	"admin token": "planted-token-1f6a", "Redis password": "planted-password-77c2", "password in a URL": "planted-url-03ab", "hash key": "0123456789abcdef0123456789abcdef",
	"JWT secret": "planted-jwt-secret-of-thirty-two-characters", "wrong token": "planted-guess-55d1", "API key": "planted-api-key-9a9a",
}

// keeper is a node with every secret there is, and all that was seen of it.
type keeper struct {
	t      *testing.T
	redis  *testredis.Server
	node   *testnode.Node
	config string
	env    []string
	seen   strings.Builder
}

func startKeeper(t *testing.T) *keeper {
	t.Helper()
	k := &keeper{t: t, redis: testredis.Single(t, testredis.Options{})}
	if _, err := k.redis.Do("ACL", "SETUSER", "limiter", "on", ">"+planted["Redis password"], "~*", "&*", "+@all"); err != nil {
		t.Fatal(err)
	}
	k.config = fmt.Sprintf(`
[redis]
url = "redis://limiter:%s@%s"
password = %q
hash_key = %q
[limiter]
timeout = "5s"
[shutdown]
grace = "10ms"
[log]
level = "debug"
[[identity.jwt]]
issuer = "i"
audience = "a"
algorithms = ["HS256"]
secret = %q
`, planted["password in a URL"], k.redis.Addr(), planted["Redis password"], planted["hash key"], planted["JWT secret"])
	tokenFile := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(tokenFile, []byte(planted["admin token"]), 0o600); err != nil {
		t.Fatal(err)
	}
	k.env = []string{"SLUICE_ADMIN__TOKEN_FILE=" + tokenFile}
	k.node = testnode.Start(t, testnode.Options{Config: k.config, Rules: usersRule, NoToken: true, Env: k.env, Gateway: true})
	if d, _ := check(t, k.node, "ann"); d.Mode != "exact" {
		t.Fatalf("got %+v, want exact: does the password reach Redis?\n%s", d, k.node.Log())
	}
	return k
}

// ask asks the admin listener, and keeps what it answers.
func (k *keeper) ask(method, path, body, token string) {
	k.t.Helper()
	a := mustRequest(k.t, method, "http://"+k.node.Admin+path, body, "Authorization", "Bearer "+token)
	fmt.Fprintln(&k.seen, a.status, a.header, a.body)
}

// look asks everything that is there to be looked at.
func (k *keeper) look() {
	k.t.Helper()
	for _, path := range []string{"/v1/status", "/v1/rules", "/metrics", "/readyz?verbose"} {
		k.ask(http.MethodGet, path, "", planted["admin token"])
	}
	for _, c := range []string{"config print", "config print --effective", "config print --effective --output json", "config check", "doctor"} {
		fmt.Fprintln(&k.seen, testnode.Run(k.t, k.env, append(strings.Fields(c), "--config", filepath.Join(k.node.Dir, "sluice.toml"))...))
	}
}

func TestSecrets_AppearNowhere(t *testing.T) {
	t.Parallel()
	k := startKeeper(t)
	k.ask(http.MethodGet, "/v1/status", "", planted["wrong token"])
	k.ask(http.MethodPost, "/v1/reset", `{"subject":{"user":"ann","api_key":"`+planted["API key"]+`"}}`, planted["admin token"])
	k.look()

	// What goes wrong is told, and must not tell them either.
	k.redis.Kill()
	check(t, k.node, "ann")
	for n, broken := range []string{
		strings.Replace(k.config, k.redis.Addr(), "nonsense:port:x", 1),
		strings.Replace(k.config, "[log]", "[log]\nunknown = \""+planted["JWT secret"]+"\"", 1),
		strings.Replace(k.config, `hash_key = "`, `hash_key = "x`, 1),
	} {
		k.node.WriteConfig(broken)
		wantReload(t, k.node, "the configuration was not taken", n+1)
		k.look()
	}
	k.node.WriteConfig(k.config)
	wantReload(t, k.node, "configuration reloaded", 1)
	k.node.Signal(syscall.SIGHUP)
	wantReload(t, k.node, "configuration reloaded", 2)
	k.look()
	stopped(t, k.node, exitWithin)

	k.seen.WriteString(k.node.Log())
	seen := k.seen.String()
	for name, secret := range planted {
		if i := strings.Index(seen, secret); i >= 0 {
			t.Errorf("the %s was told: %s", name, seen[max(0, i-200):i+len(secret)])
		}
	}
	if !strings.Contains(seen, "[redacted]") || !strings.Contains(seen, "trusted_proxies") {
		t.Error("nothing was looked at")
	}
}
