package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// write puts a file into a folder of its own and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// options read only what a test says, nothing of the machine.
func options(path string, environ ...string) Options {
	return Options{Path: path, Environ: append([]string{}, environ...), Search: []string{}}
}

func mustLoad(t *testing.T, opts Options) *Loaded {
	t.Helper()
	loaded, err := Load(opts)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// faultsOf returns the faults as lines, without the file's folder.
func faultsOf(t *testing.T, opts Options) []string {
	t.Helper()
	_, err := Load(opts)
	var all *Error
	if !errors.As(err, &all) {
		t.Fatalf("Load: got error %v, want *Error", err)
	}
	lines := make([]string, len(all.Faults))
	for i, f := range all.Faults {
		lines[i] = strings.ReplaceAll(f.String(), filepath.Dir(opts.Path)+string(filepath.Separator), "")
	}
	return lines
}

func TestLoad_WithoutAnythingIsTheDefault(t *testing.T) {
	t.Parallel()
	loaded := mustLoad(t, options(""))
	want := Default()
	want.Node = loaded.Config.Node
	if want.Node == "" {
		t.Error("node: got none, want the host's name")
	}
	if !reflect.DeepEqual(loaded.Config, want) {
		t.Errorf("got %+v, want %+v", loaded.Config, want)
	}
	if len(loaded.Warnings) > 0 || loaded.Path != "" {
		t.Errorf("got warnings %q and path %q, want none", loaded.Warnings, loaded.Path)
	}
}

func TestLoad_FlagsWinOverEnvironmentOverFile(t *testing.T) {
	t.Parallel()
	path := write(t, "sluice.toml", `
node = "file"
[log]
level = "debug"
format = "json"
[limiter]
timeout = "20ms"
[identity]
trusted_proxies = ["10.0.0.0/8"]
`)
	opts := options(path, "SLUICE_LOG__LEVEL=warn", "SLUICE_NODE=env", "SLUICE_IDENTITY__TRUSTED_PROXIES=192.0.2.0/24, 2001:db8::/32",
		"SLUICE_IDENTITY__ATTRIBUTES=plan=X-Plan,region=X-Region", "PATH=/bin")
	opts.Overrides = []Override{{"node", "first", "--set"}, {"node", "flag", "--node"}}
	loaded := mustLoad(t, opts)
	c := loaded.Config
	if c.Node != "flag" || c.Log.Level != "warn" || c.Log.Format != "json" || c.Limiter.Timeout.Std() != 20*time.Millisecond {
		t.Errorf("got node %q, level %q, format %q, timeout %s", c.Node, c.Log.Level, c.Log.Format, c.Limiter.Timeout)
	}
	if len(c.Identity.TrustedProxies) != 2 || c.Identity.Attributes["region"] != "X-Region" {
		t.Errorf("got proxies %v, attributes %v", c.Identity.TrustedProxies, c.Identity.Attributes)
	}
	for field, want := range map[string]string{
		"node":                     "--node",
		"log.level":                "SLUICE_LOG__LEVEL",
		"log.format":               path + ":5:1",
		"identity.trusted_proxies": "SLUICE_IDENTITY__TRUSTED_PROXIES",
		"shutdown.grace":           "default",
	} {
		if got := loaded.Origin(field).String(); got != want {
			t.Errorf("origin of %s: got %s, want %s", field, got, want)
		}
	}
}

func TestLoad_FindsTheFileByFlagThenVariableThenPlace(t *testing.T) {
	t.Parallel()
	byFlag, byVariable, byPlace := write(t, "a.toml", `node = "flag"`), write(t, "b.toml", `node = "variable"`), write(t, "c.toml", `node = "place"`)
	opts := Options{Path: byFlag, Environ: []string{"SLUICE_CONFIG=" + byVariable}, Search: []string{"/nonexistent", byPlace}}
	for _, want := range []string{"flag", "variable", "place"} {
		if got := mustLoad(t, opts).Config.Node; got != want {
			t.Errorf("got the file of %s, want of %s", got, want)
		}
		if opts.Path != "" {
			opts.Path = ""
		} else {
			opts.Environ = []string{}
		}
	}
	faults := faultsOf(t, options("/nonexistent/sluice.toml"))
	if len(faults) != 1 || !strings.HasPrefix(faults[0], "--config: configuration file: ") {
		t.Errorf("missing file: got %q", faults)
	}
}

func TestLoad_TakesPathsFromTheFilesFolder(t *testing.T) {
	t.Parallel()
	path := write(t, "sluice.toml", `
[http.tls]
cert_file = "tls/cert.pem"
key_file = "/run/key.pem"
[redis]
url = "rediss://localhost"
[[identity.jwt]]
issuer = "me"
audience = "you"
algorithms = ["EdDSA"]
jwks_file = "keys.json"
`)
	dir := filepath.Dir(path)
	if err := os.Mkdir(filepath.Join(dir, "rules.d"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := mustLoad(t, options(path, "SLUICE_REDIS__CA_FILE=ca.pem")).Config
	for _, v := range []struct{ got, want string }{
		{c.HTTP.TLS.CertFile, filepath.Join(dir, "tls/cert.pem")},
		{c.HTTP.TLS.KeyFile, "/run/key.pem"},
		{c.Redis.CAFile, "ca.pem"},
		{c.Rules.Dir, filepath.Join(dir, "rules.d")},
		{c.Identity.JWT[0].JWKSFile, filepath.Join(dir, "keys.json")},
	} {
		if v.got != v.want {
			t.Errorf("got %s, want %s", v.got, v.want)
		}
	}
}

func TestLoad_FillsTheTablesOfLists(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, options(write(t, "sluice.toml", `
[gateway]
listen = ":0"
[[gateway.upstream]]
name = "api"
url = "http://127.0.0.1:9000"
[[gateway.route]]
upstream = "api"
[[identity.jwt]]
issuer = "me"
audience = "you"
algorithms = ["HS256"]
secret = "0123456789abcdef0123456789abcdef"
`))).Config
	if c.Gateway.Upstreams[0].Timeout.Std() != 30*time.Second || c.Gateway.Routes[0].Path != "/" || c.Gateway.Routes[0].Namespace != "default" {
		t.Errorf("got %+v", c.Gateway)
	}
	if j := c.Identity.JWT[0]; j.Header != "Authorization" || j.UserClaim != "sub" {
		t.Errorf("got %+v", j)
	}
}

func TestLoad_ReadsInlineRulesWithTheirPlaces(t *testing.T) {
	t.Parallel()
	loaded := mustLoad(t, options(write(t, "sluice.toml", `
[[rule]]
name = "a"
limits = [{ limit = 3, window = "1s" }]
enabled = false

[[rule]]
name = "b"
  [rule.match]
  routes = ["/x"]
  [[rule.limits]]
  limit = 5
  window = "7d"

[[override]]
user = "u"
rule = "a"
limits = [{ limit = 9, window = "1s" }]
valid_until = 2027-01-01T00:00:00Z
`)))
	doc := loaded.Config.Document
	if len(doc.Rules) != 2 || *doc.Rules[0].Enabled || doc.Rules[1].Enabled != nil || doc.Rules[1].Match.Routes[0] != "/x" {
		t.Fatalf("got rules %+v", doc.Rules)
	}
	if doc.Rules[1].Limits[0].Window.Std() != 7*24*time.Hour || doc.Overrides[0].User != "u" || doc.Overrides[0].ValidUntil.Year() != 2027 {
		t.Errorf("got %+v", doc)
	}
	for path, line := range map[string]int{
		"rule[0]": 2, "rule[0].limits[0].window": 4, "rule[1].name": 8, "rule[1].match.routes": 10, "rule[1].limits[0].limit": 12,
		"override[0].valid_until": 19,
	} {
		if got := loaded.Origin(path).Line; got != line {
			t.Errorf("%s: got line %d, want %d", path, got, line)
		}
	}
}

func TestLoad_TakesAnyValueFromAFile(t *testing.T) {
	t.Parallel()
	token := write(t, "token", "0123456789abcdef\n")
	c := mustLoad(t, options("", "SLUICE_ADMIN__TOKEN_FILE="+token)).Config
	if got := c.Admin.Token.Reveal(); got != "0123456789abcdef" {
		t.Errorf("got %q", got)
	}
	faults := faultsOf(t, options("", "SLUICE_ADMIN__TOKEN_FILE="+token, "SLUICE_ADMIN__TOKEN=0123456789abcdef", "SLUICE_NODE_FILE=/nonexistent"))
	if len(faults) != 2 || !strings.Contains(faults[0], "set by SLUICE_ADMIN__TOKEN as well") || !strings.Contains(faults[1], "no such file") {
		t.Errorf("got %q", faults)
	}
}

func TestLoad_LeavesVariablesOfOthersAlone(t *testing.T) {
	t.Parallel()
	opts := options("", "SLUICE_SERVICE_HOST=10.0.0.1", "SLUICE_SERVICE_PORT_HTTP=80", "SLUICE_PORT=tcp://10.0.0.1:80",
		"SLUICE_PORT_80_TCP_ADDR=10.0.0.1", "SLUICE_REDIS_SERVICE_HOST=10.0.0.2", "SLUICE_REDIS_PORT_6379_TCP=tcp://10.0.0.2:6379", "SLUICE_ADDR=x")
	opts.OtherVariables = []string{"SLUICE_ADDR"}
	mustLoad(t, opts)
	for _, f := range Fields() {
		if serviceLink.MatchString(variable(f.Name)) {
			t.Errorf("%s could not be set: its variable looks like one of Kubernetes", f.Name)
		}
	}
}

func TestFields_HaveOneVariableEach(t *testing.T) {
	t.Parallel()
	var all []string
	for _, f := range Fields() {
		name := variable(f.Name)
		if slices.Contains(all, name) {
			t.Errorf("%s: %s sets another field as well", f.Name, name)
		}
		// x_file would be both itself and the file form of x.
		if base, isFile := strings.CutSuffix(name, fromFile); isFile && slices.Contains(all, base) {
			t.Errorf("%s: %s is also the file form of %s", f.Name, name, base)
		}
		all = append(all, name)
	}
}
