package config

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

const sample = `node = "edge-1"

[http]
listen = ":8080"

[http.tls]
cert_file = "/tls/cert.pem"
key_file = "/tls/key.pem"

[admin]
token = "hunter2-hunter2-hunter2"

[redis]
url = "rediss://limiter:hunter2@redis-1:6379"

[identity]
trusted_proxies = ["10.0.0.0/8"]
attributes = { "x.y" = "X-\"Y\"", plan = "X-Plan" }

[[identity.jwt]]
issuer = "https://login.example.com/"
audience = "api"
algorithms = ["RS256"]
jwks_url = "https://login.example.com/keys?key=hunter2"

[gateway]
listen = ":8443"

[[gateway.upstream]]
name = "api"
url = "http://127.0.0.1:9000"

[[gateway.route]]
path = "/v1"
upstream = "api"
attributes = { plan = "gold" }

[[rule]]
name = "login"
key = ["ip"]
limits = [{ limit = 5, window = "1m" }]
match = { routes = ["/login"] }
enabled = false

[[block]]
cidr = "192.0.2.1"
reason = "abuse\u0007"
until = 2027-01-01T00:00:00Z
`

func loadSample(t *testing.T) *Loaded {
	t.Helper()
	text := strings.Replace(sample, `"X-\"Y\""`, `"X-Y"`, 1)
	return mustLoad(t, options(write(t, "sluice.toml", text), "SLUICE_LOG__LEVEL=debug"))
}

func printed(t *testing.T, l *Loaded, opts PrintOptions) string {
	t.Helper()
	var b strings.Builder
	if err := l.Print(&b, opts); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPrint_NamesOriginsAndHidesSecrets(t *testing.T) {
	t.Parallel()
	got := printed(t, loadSample(t), PrintOptions{Effective: true})
	lines := strings.Split(got, "\n")
	for _, want := range []string{
		`node = "edge-1" # from sluice.toml:1`,
		`token = "[redacted]" # from sluice.toml:11`,
		`url = "rediss://limiter:[redacted]@redis-1:6379" # from sluice.toml:14`,
		`jwks_url = "https://login.example.com/keys?[redacted]" # from sluice.toml:24`,
		`level = "debug" # from SLUICE_LOG__LEVEL`,
		`grace = "2s" # default`,
		`window = "1m" # from sluice.toml:41`,
		`reason = "abuse\u0007" # from sluice.toml:47`,
	} {
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.Join(strings.Fields(l), " ") == want }) {
			t.Errorf("no line %s in:\n%s", want, got)
		}
	}
	for _, opts := range []PrintOptions{{}, {Effective: true}, {JSON: true}, {JSON: true, Effective: true}} {
		if out := printed(t, loadSample(t), opts); strings.Contains(out, "hunter2") {
			t.Errorf("%+v: a secret appears in:\n%s", opts, out)
		}
	}
	if set := printed(t, loadSample(t), PrintOptions{}); strings.Contains(set, "# default") {
		t.Errorf("defaults were not asked for:\n%s", set)
	}
}

func TestPrint_CanBeLoadedAgain(t *testing.T) {
	t.Parallel()
	before := loadSample(t)
	// What is hidden cannot come back, so it is taken away first.
	before.Config.Admin.Token = ""
	before.Config.Redis.URL = "rediss://redis-1:6379"
	before.Config.Identity.JWT[0].JWKSURL = "https://login.example.com/keys"
	for _, effective := range []bool{false, true} {
		text := printed(t, before, PrintOptions{Effective: effective})
		after := mustLoad(t, options(write(t, "sluice.toml", text)))
		if !effective {
			after.Config.Node = before.Config.Node
		}
		if a, b := printed(t, after, PrintOptions{JSON: true, Effective: true}), printed(t, before, PrintOptions{JSON: true, Effective: true}); stripOrigins(t, a) != stripOrigins(t, b) {
			t.Errorf("effective %v:\n got %s\nwant %s", effective, stripOrigins(t, a), stripOrigins(t, b))
		}
	}
}

func stripOrigins(t *testing.T, text string) string {
	t.Helper()
	var doc struct{ Values []map[string]any }
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, v := range doc.Values {
		delete(v, "origin")
		line, _ := json.Marshal(v)
		b.Write(append(line, '\n'))
	}
	return b.String()
}

func TestRestartNeeded_ListsWhatDoesNotActLive(t *testing.T) {
	t.Parallel()
	before, after := loadSample(t), loadSample(t)
	if got := RestartNeeded(&before.Config, &after.Config); got != nil {
		t.Errorf("nothing changed: got %q", got)
	}
	c := &after.Config
	c.Enabled, c.Log.Level, c.Identity.IPv6Prefix, c.Answers.ForwardAuthDenied = false, "warn", 56, 403
	c.Gateway.Routes, c.Document.Rules, c.Rules.Dir = nil, nil, "elsewhere"
	c.HTTP.Listen, c.Redis.Password, c.HTTP.TLS.CertFile, c.Log.Format = ":1", "x", "y", "json"
	want := []string{"http.listen", "http.tls.cert_file", "redis.password", "log.format"}
	if got := RestartNeeded(&before.Config, c); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFlags_ReachLoadFromACommandBelow(t *testing.T) {
	t.Parallel()
	var f Flags
	fs := pflag.NewFlagSet("sluice", pflag.ContinueOnError)
	f.AddTo(fs)
	path := write(t, "sluice.toml", "node = 'x'")
	if err := fs.Parse([]string{"-c", path, "--set", "identity.order=jwt,header", "--set", "log.level=warn"}); err != nil {
		t.Fatal(err)
	}
	if got := FlagsOf(fs); !reflect.DeepEqual(got, f) {
		t.Errorf("got %+v, want %+v", got, f)
	}
	opts := FlagsOf(fs).Options()
	opts.Environ = []string{}
	c := mustLoad(t, opts).Config
	if c.Node != "x" || !slices.Equal(c.Identity.Order, []string{"jwt", "header"}) || c.Log.Level != "warn" {
		t.Errorf("got %+v", c)
	}
}
