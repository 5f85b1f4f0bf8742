package sluice_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/sluicehq/sluice"

// imports is the architecture: what each package may import beyond the standard library, and why it may not import
// more. Paths of our own are relative to the module; "/..." stands for a path and all below it. A package that is not
// listed fails the test.
var imports = map[string]struct {
	may []string
	why string
}{
	"":                       {[]string{"internal/algo"}, "the root says what a rate limiter is; every other package points at it"},
	"internal/algo":          {nil, "pure arithmetic: the twin of the Lua scripts needs nothing"},
	"internal/counter":       {[]string{"", "internal/algo"}, "what every store shares, and no store"},
	"memstore":               {[]string{"", "internal/algo", "internal/counter"}, "a store needs the root and the arithmetic; the library packages take no dependencies"},
	"redisstore":             {[]string{"", "internal/algo", "internal/counter"}, "clients are adapted from outside, so that users of one do not compile the other"},
	"redisstore/rueidisconn": {[]string{"redisstore", "github.com/redis/rueidis"}, "an adapter knows its client and redisstore"},
	"redisstore/goredisconn": {[]string{"redisstore", "github.com/redis/go-redis/v9"}, "an adapter knows its client and redisstore"},
	"storetest":              {[]string{""}, "the suite knows the interface, never an implementation"},
	"httplimit":              {[]string{""}, "the middleware works with any Checker"},
	"internal/engine":        {[]string{""}, "what every door asks knows no door, no driver and no feed"},
	"grpclimit": {
		[]string{"", "httplimit", "api/sluicev1", "google.golang.org/grpc/...", "google.golang.org/protobuf/...", "google.golang.org/genproto/..."},
		"interceptors and client for gRPC users; no part of the server",
	},
	"api/sluicev1": {[]string{"google.golang.org/grpc/...", "google.golang.org/protobuf/..."}, "generated; clients import nothing else of ours"},
	"docs/schema":  {nil, "holds generated files"},

	"cmd/sluice": {
		[]string{
			"", "docs/schema", "internal/app", "internal/config", "internal/doctor", "internal/envoyimport", "internal/postgres", "internal/registry", "internal/ruledoc",
			"internal/ruletest", "redisstore/rueidisconn", "github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/pelletier/go-toml/v2",
			"github.com/schollz/progressbar/v3", "go.yaml.in/yaml/v3",
		},
		"commands are thin: a node is put together in app, and everything else is asked over HTTP",
	},
	"internal/app": {
		[]string{
			"", "httplimit", "memstore", "redisstore", "redisstore/rueidisconn",
			"internal/adminauth", "internal/adminhttp", "internal/apikey", "internal/certs", "internal/checkgrpc", "internal/checkhttp", "internal/config",
			"internal/control", "internal/directory", "internal/engine", "internal/postgres", "internal/registry",
			"internal/envoyrls", "internal/forwardauth", "internal/gateway", "internal/httpserver", "internal/identity", "internal/rulefeed",
			"internal/ruledoc", "internal/telemetry", "internal/watch",
			"github.com/prometheus/client_golang/prometheus", "golang.org/x/sync/errgroup", "google.golang.org/grpc/...",
		},
		"the only package that knows all others",
	},
	"internal/doctor": {[]string{"", "internal/config", "redisstore", "redisstore/rueidisconn", "github.com/redis/rueidis"}, "looks at a configuration and its Redis from outside"},

	"internal/checkhttp":        {[]string{"", "httplimit", "internal/engine"}, "a door knows the engine and no other door"},
	"internal/checkgrpc":        {[]string{"", "api/sluicev1", "internal/engine", "google.golang.org/grpc/...", "google.golang.org/protobuf/...", "google.golang.org/genproto/..."}, "a door knows the engine and no other door"},
	"internal/envoyrls":         {[]string{"", "httplimit", "internal/engine", "internal/envoyrls/pattern", "github.com/envoyproxy/go-control-plane/envoy/...", "google.golang.org/grpc/...", "google.golang.org/protobuf/..."}, "a door knows the engine and no other door"},
	"internal/envoyrls/pattern": {nil, "what door and importer agree on"},
	"internal/envoyimport":      {[]string{"", "internal/envoyrls/pattern", "internal/ruledoc", "go.yaml.in/yaml/v3"}, "turns another's configuration into our documents; nothing runs"},
	"internal/forwardauth":      {[]string{"", "httplimit", "internal/cleanpath", "internal/engine", "internal/httpserver"}, "a door knows the engine and no other door"},
	"internal/gateway":          {[]string{"", "httplimit", "internal/cleanpath", "internal/config", "internal/engine", "internal/httpserver"}, "a door knows the engine and no other door"},
	"internal/gateway/smuggle":  {nil, "attacks for tests and bars; the attacked share nothing with it"},
	"internal/adminhttp": {
		[]string{"", "memstore", "internal/adminauth", "internal/checkhttp", "internal/config", "internal/engine", "internal/postgres", "internal/registry", "internal/ruledoc", "internal/telemetry"},
		"a door: what it shows is handed in, and what it changes goes through the registry's driver",
	},
	"internal/cleanpath":  {nil, "pure functions of a path"},
	"internal/httpserver": {nil, "bounds every HTTP listener; knows no door"},

	"internal/config":                {[]string{"internal/ruledoc", "redisstore/rueidisconn", "github.com/pelletier/go-toml/v2/...", "github.com/spf13/pflag", "golang.org/x/net/http/httpguts"}, "what a node is told; knows the written forms, no part that acts on them"},
	"internal/ruledoc":               {[]string{"", "github.com/pelletier/go-toml/v2/...", "go.yaml.in/yaml/v3"}, "the written form of rules; knows nobody who reads it"},
	"internal/rulefeed":              {[]string{"", "internal/ruledoc", "internal/directory", "internal/watch"}, "reads rules and publishes them; knows nobody who uses them"},
	"internal/directory":             {[]string{"", "internal/apikey", "internal/registry", "internal/ruledoc", "github.com/gaissmai/bart", "github.com/redis/rueidis"}, "what is on record about subjects; the database is handed in"},
	"internal/registry":              {[]string{"", "internal/ruledoc"}, "the types of the control plane; knows nobody who stores or shows them"},
	"internal/postgres":              {[]string{"", "internal/registry", "internal/ruledoc", "github.com/jackc/pgx/v5/...", "github.com/pressly/goose/v3/..."}, "the database driver; knows no door and no feed"},
	"internal/control":               {[]string{"", "internal/registry", "internal/ruledoc", "internal/rulefeed", "github.com/redis/rueidis"}, "brings rules and notices from the database to every node, through Redis"},
	"internal/adminauth":             {[]string{"internal/config", "internal/registry", "github.com/coreos/go-oidc/v3/oidc", "golang.org/x/oauth2"}, "who an operator is and what he may; knows no route's work"},
	"internal/apikey":                {nil, "the form of keys and tokens, and their hashes"},
	"internal/ruletest":              {[]string{"", "memstore", "internal/directory", "internal/ruledoc"}, "runs traces against rules with no server"},
	"internal/testpg":                {[]string{"internal/postgres", "github.com/jackc/pgx/v5"}, "starts processes, with our tables in them"},
	"internal/identity":              {[]string{"", "internal/config", "internal/identity/edge", "github.com/golang-jwt/jwt/v5", "github.com/pires/go-proxyproto"}, "who is calling; the doors ask it and it knows no door"},
	"internal/identity/edge":         {nil, "what proxies may say: pure functions of a peer and a header, so that the bar can run them alone"},
	"internal/identity/addresscases": {[]string{"internal/identity/edge"}, "the table that tests and bar share"},
	"internal/certs":                 {[]string{"internal/config"}, "certificates of listeners and connections"},
	"internal/watch":                 {[]string{"github.com/fsnotify/fsnotify"}, "tells of changed files; knows nothing of what is in them"},
	"internal/telemetry": {
		[]string{"", "github.com/prometheus/client_golang/prometheus/...", "go.opentelemetry.io/contrib/exporters/autoexport", "go.opentelemetry.io/otel/..."},
		"watches decisions; knows no door, store or feed",
	},

	"internal/testproxy":       {nil, "starts proxies; knows nothing of sluice"},
	"internal/testnode":        {[]string{"internal/testredis"}, "runs the command from outside"},
	"internal/testredis":       {nil, "starts processes; knows nothing of sluice"},
	"internal/oracle/witness":  {[]string{"", "internal/oracle", "redisstore"}, "writes the log at the seam to Redis"},
	"internal/oracle/workload": {[]string{"", "internal/oracle", "internal/oracle/witness", "internal/testredis", "redisstore", "redisstore/rueidisconn"}, "loads a real store as production would"},
	"internal/oracle":          {[]string{""}, "the judge must not share code with the judged"},
}

func TestImports_FollowTheArchitecture(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		rule, known := imports[name]
		if !known {
			t.Errorf("package %q is not in the import table: add it to deps_test.go with its reason", name)
			continue
		}
		for _, path := range p.Imports {
			if !strings.Contains(path, ".") { // the standard library
				continue
			}
			short := path
			if path == module || strings.HasPrefix(path, module+"/") {
				short = strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
			}
			allowed := func(may string) bool {
				below, all := strings.CutSuffix(may, "/...")
				return may == short || all && (short == below || strings.HasPrefix(short, below+"/"))
			}
			if !slices.ContainsFunc(rule.may, allowed) {
				t.Errorf("%q imports %q: %s", name, path, rule.why)
			}
		}
	}
}

func TestPackages_HaveOneComment(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		if p.Doc == "" {
			t.Errorf("package %s has no comment", p.ImportPath)
		}
	}
}

type goPackage struct {
	ImportPath string
	Doc        string
	Imports    []string
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Doc,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}
