package config

import (
	"slices"
	"strings"
	"testing"
)

// secret is planted wherever somebody could put one by mistake; no message may repeat it.
const secret = "hunter2-hunter2"

func TestLoad_ReportsEveryFaultAtOnceWithItsPlace(t *testing.T) {
	t.Parallel()
	opts := options(write(t, "sluice.toml", `enabeld = true
[http]
listen = "8080"
max_in_flight = 0
[grpc]
listen = 5
listne = ":1"
[redis]
pasword = "`+secret+`"
url = "redis://u:`+secret+`/x@host"
[limiter]
timeout = 5
[[rule]]
namme = "a"
limits = [{ limit = 3, windwo = "1s" }]
`), "SLUICE_REDIS__URI="+secret, "SLUICE_LIMITER__NODES=many", "SLUICE_GATEWAY__ROUTE="+secret)
	opts.Overrides = []Override{
		{"admin.token", secret, "--set"},
		{"redis.url", "redis://:" + secret + "@host", "--redis"},
		{"", secret, "--set"},
		{"log.level", "loud", "--log-level"},
		{"gateway.route.path", "/", "--set"},
	}
	got := faultsOf(t, opts)
	want := []string{
		`sluice.toml:1:1: enabeld: unknown name; did you mean "enabled"?`,
		`sluice.toml:3:1: http.listen: "8080" is not an address; did you mean ":8080"?`,
		`sluice.toml:4:1: http.max_in_flight: is 0; want 1 or more`,
		`sluice.toml:6:1: grpc.listen: is a whole number, but should be text in quotes`,
		`sluice.toml:7:1: grpc.listne: unknown name; did you mean "listen"?`,
		`sluice.toml:9:1: redis.pasword: unknown name; did you mean "password"?`,
		`sluice.toml:10:1: redis.url: redis URL has a path that is no database: want a number, as in redis://host:6379/0`,
		`sluice.toml:12:1: limiter.timeout: is a whole number, but should be a duration in quotes, such as "500ms"`,
		`sluice.toml:14:1: rule[0].namme: unknown name; did you mean "name"?`,
		`sluice.toml:15:24: rule[0].limits[0].windwo: unknown name; did you mean "window"?`,
		`SLUICE_GATEWAY__ROUTE: unknown variable; lists of tables are written in the file only`,
		`SLUICE_LIMITER__NODES: limiter.nodes: "many" is not a whole number`,
		`SLUICE_REDIS__URI: unknown variable; did you mean "SLUICE_REDIS__URL"?`,
		`--log-level: log.level: "loud" is not known; want one of "debug", "info", "warn", "error"`,
		`--redis: redis.url: holds a secret, which does not belong on the command line; set SLUICE_REDIS__URL_FILE to the name of a file that holds it`,
		`--set: is not field=value; write it as --set redis.url=redis://127.0.0.1:6379`,
		`--set: admin.token: holds a secret, which does not belong on the command line; set SLUICE_ADMIN__TOKEN_FILE to the name of a file that holds it`,
		`--set: gateway.route.path: cannot be set by a flag; lists of tables are written in the file only`,
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
	if all := strings.Join(got, "\n"); strings.Contains(all, secret) {
		t.Error("a secret appears in the faults")
	}
}

func TestLoad_NamesTheLineOfASyntaxErrorWithoutItsText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"\n[admin]\ntoken = " + secret, "\n[admin]\ntoken = \"" + secret, "\n[admin]\ntoken = '" + secret + "\n'", "\n[admin]\ntoken = \"\\q" + secret + "\"",
		"\n[admin]\nx = 1\nx = \"" + secret + "\"", "\n[admin]\n\"" + secret + "\" 5", "\n[admin]\ntoken = \"\"\"" + secret, "\n[admin]\ntoken = 2026-" + secret,
		"\n[admin]\n" + secret + ".x", "\n[admin]\n[admin]\n" + secret + "=1",
	} {
		got := faultsOf(t, options(write(t, "sluice.toml", text), "SLUICE_NODES=3"))
		if len(got) != 2 || !strings.HasPrefix(got[0], "sluice.toml:") || !strings.Contains(got[0], "not valid TOML: ") || !strings.HasPrefix(got[1], "SLUICE_NODES: ") {
			t.Errorf("%q: got %q, want the syntax error with its line, and the variable", text, got)
		}
		if strings.Contains(strings.Join(got, "\n"), "hunter2") {
			t.Errorf("%q: the secret appears in %q", text, got)
		}
	}
}

const (
	issuer   = "[[identity.jwt]]\nissuer='i'\naudience='a'\n"
	upstream = "[[gateway.upstream]]\nname='api'\nurl='http://h:1'\n"
)

// fieldFaults are files and what one of their faults says.
var fieldFaults = []struct{ text, want string }{
	{"node = ' '", "node: is empty"},
	{"http.listen = 'http://h:1'", "leave the scheme out"},
	{"http.listen = 'h:http'", "is not a port"},
	{"http.listen = 'a b:1'", "is not a host"},
	{"http.listen = ':9090'", "is taken by http.listen"},
	{"http.listen = ''\ngrpc.listen = ''\nadmin.listen = ''", "no listener has an address"},
	{"http.tls.cert_file = 'c'", "http.tls.cert_file: has no key"},
	{"http.tls.key_file = 'c'", "http.tls.key_file: has no certificate"},
	{"http.tls.client_ca_file = 'c'", "http.tls.client_ca_file: callers show"},
	{"admin.token = 'short'", "admin.token: has 5 characters"},
	{"admin.token = 'long enough but with spaces'", "other than visible ASCII"},
	{"redis.url = 'http://h'", "scheme \"http\""},
	{"redis.hash_key = '" + secret + "'", "is not 32 hexadecimal digits"},
	{"redis.ca_file = 'x'", "redis.ca_file: is used with TLS only"},
	{"redis.url = 'rediss://h'\nredis.cert_file = 'x'", "go together"},
	{"limiter.timeout = '-1s'", "limiter.timeout: is -1s"},
	{"limiter.timeout = '1'", "is not a duration"},
	{"limiter.nodes = -1", "limiter.nodes: is -1"},
	{"limiter.fallback_counters = 0", "limiter.fallback_counters: is 0"},
	{"shutdown.drain = '0s'", "shutdown.drain: is 0s"},
	{"identity.trusted_proxies = ['10.0.0.1']", `did you mean "10.0.0.1/32"?`},
	{"identity.trusted_proxies = ['10.0.0.1/8']", `did you mean "10.0.0.0/8"?`},
	{"identity.order = ['ip']", `identity.order[0]: "ip" is not known`},
	{"identity.order = ['jwt','jwt']", `identity.order[1]: "jwt" is listed twice`},
	{"identity.forwarded = 'via'", "identity.forwarded"},
	{"identity.ipv6_prefix = 65", "want 48 to 64"},
	{"identity.headers.user = 'X User'", "is not the name of a header"},
	{"identity.attributes = {plan = ''}", "identity.attributes.plan"},
	{"identity.attributes = ['x']", "should be a table of texts"},
	{"answers.headers = ['none','ietf']", "stands beside others"},
	{"answers.forward_auth_denied = 200", "want a status from 400 to 499"},
	{"[[identity.jwt]]\nalgorithms=['RS256']\njwks_url='https://h'", "identity.jwt[0].audience: is missing"},
	{issuer + "jwks_url='https://h'", "algorithms: is missing"},
	{issuer + "jwks_url='https://h'\nalgorithms=['none']", `"none" is not known`},
	{issuer + "jwks_url='https://h'\nalgorithms=['HS256']", "shared secret only"},
	{issuer + "secret='" + secret + secret + secret + "'\nalgorithms=['RS256']", "not used with a shared secret"},
	{issuer + "secret='" + secret + "'\nalgorithms=['HS256']", "want 32 or more"},
	{issuer + "jwks_url='http://h'\nalgorithms=['RS256']", "is not https"},
	{issuer + "algorithms=['RS256']", "has 0 of jwks_url"},
	{"[[gateway.upstream]]\nname='a'\nurl='ftp://h'", "is not the URL of a service"},
	{"[[gateway.upstream]]\nname='a'\nurl='http://u:" + secret + "@h'", "has credentials"},
	{"[[gateway.upstream]]\nname='a'\nurl='http://h?x'", "has parameters"},
	{"[[gateway.upstream]]\nname='a'\nurl='http://h'\nca_file='x'", "https only"},
	{"[[gateway.upstream]]\nname='a'\nurl='http://h'\ntimeout='0s'", "timeout: is 0s"},
	{"[[gateway.upstream]]\nname='a'\nurl='http://h'\nhost='http://h'", "is not a host"},
	{upstream + upstream, "is the name of another upstream"},
	{upstream + "[[gateway.route]]\nupstream='apu'", `there is no upstream "apu"; did you mean "api"?`},
	{upstream + "[[gateway.route]]\npath='/'", "upstream: is missing"},
	{upstream + "[[gateway.route]]\nupstream='api'\npath=''", "is not a path"},
	{upstream + "[[gateway.route]]\nupstream='api'\npath='/a/*'", "plain prefix"},
	{upstream + "[[gateway.route]]\nupstream='api'\nhost='h:80'", "is not a host's name"},
	{upstream + "[[gateway.route]]\nupstream='api'\nmethods=['get']", "is not a method"},
	{upstream + "[[gateway.route]]\nupstream='api'\ncost=-1", "cost: is -1"},
	{upstream + "[[gateway.route]]\nupstream='api'\n[[gateway.route]]\nupstream='api'", "takes the same requests as gateway.route[0]"},
	{"[[block]]\nuntil = 2026-01-01", "should be a time with its zone"},
	{"rule = 5", "rule: is a whole number, but should be a list of tables"},
	{"http = 5", "http: is a whole number, but should be a table"},
}

func TestLoad_FaultsOfSingleFields(t *testing.T) {
	t.Parallel()
	for _, c := range fieldFaults {
		got := faultsOf(t, options(write(t, "sluice.toml", c.text)))
		if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, c.want) }) {
			t.Errorf("%q: got %q, want one with %q", c.text, got, c.want)
		}
		if len(got) > 3 || strings.Contains(strings.Join(got, "\n"), "hunter2") {
			t.Errorf("%q: got %q, want fewer and no secret", c.text, got)
		}
	}
}

func TestLoad_WarnsOfWhatContradictsItself(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"gateway.listen = ':80'", "answers 404"},
		{"admin.listen = ':9090'\nadmin.token = '0123456789abcdef'", "token is sent in plain text"},
		{"redis.url = 'redis://redis:6379'\nredis.password = 'x'", "password is sent to Redis in plain text"},
		{"identity.headers.user = 'X-User'", "never believed"},
		{"identity.proxy_protocol = true", "nobody may use it"},
	} {
		got := mustLoad(t, options(write(t, "sluice.toml", c.text))).Warnings
		if len(got) != 1 || !strings.Contains(got[0], c.want) {
			t.Errorf("%q: got %q, want one with %q", c.text, got, c.want)
		}
	}
}

func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		"", "node = 'x'", "[http]\nlisten = ':1'", "[[rule]]\nname='a'\n[rule.match]\nusers=['x']\n[[rule.limits]]\nlimit=1\nwindow='1s'",
		"a.b.c = {d = [1, {e = 2}]}", "[[a]]\n[[a.b]]\n[a.b.c]", "\"\" = 1", "identity.attributes = {\"a.b\" = 'x'}", "[[gateway.route]]\n[gateway.route.attributes]\nx='y'",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		loaded, err := Load(options(write(t, "sluice.toml", text)))
		if (loaded == nil) == (err == nil) {
			t.Fatalf("%q: got %v and %v, want one of both", text, loaded, err)
		}
		if err != nil && err.Error() == "" {
			t.Errorf("%q: an error without text", text)
		}
	})
}
