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
// more. Paths of our own are relative to the module. A package that is not listed fails the test.
var imports = map[string]struct {
	may []string
	why string
}{
	"":                         {[]string{"internal/algo"}, "the root says what a rate limiter is; every other package points at it"},
	"internal/algo":            {nil, "pure arithmetic: the twin of the Lua scripts needs nothing"},
	"internal/counter":         {[]string{"", "internal/algo"}, "what every store shares, and no store"},
	"memstore":                 {[]string{"", "internal/algo", "internal/counter"}, "a store needs the root and the arithmetic; the library packages take no dependencies"},
	"redisstore":               {[]string{"", "internal/algo", "internal/counter"}, "clients are adapted from outside, so that users of one do not compile the other"},
	"redisstore/rueidisconn":   {[]string{"redisstore", "github.com/redis/rueidis"}, "an adapter knows its client and redisstore"},
	"redisstore/goredisconn":   {[]string{"redisstore", "github.com/redis/go-redis/v9"}, "an adapter knows its client and redisstore"},
	"storetest":                {[]string{""}, "the suite knows the interface, never an implementation"},
	"httplimit":                {[]string{""}, "the middleware works with any Checker"},
	"internal/engine":          {[]string{""}, "what every door asks knows no door, no driver and no feed"},
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
			if !slices.Contains(rule.may, short) {
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
