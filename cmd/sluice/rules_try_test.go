package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

func TestRulesTest_ExitsWith1AndTheLineThatDiffers(t *testing.T) {
	t.Parallel()
	rules := writeFile(t, "rules.toml", twoRules)
	good := writeFile(t, "good.trace", "at 0s 9 times user=a route=/search admitted=2\n")
	bad := writeFile(t, "bad.trace", "at 0s user=a allow remaining=4\n# the next is wrong\nat 1s user=a route=/search refuse\n")
	run(t, nil, 0, "good.trace: 1 line\n", "rules", "test", "-f", rules, good)
	out := run(t, nil, exitError, "bad.trace:3: at 1s user=a", "rules", "test", "-f", rules, filepath.Dir(bad), good)
	if !strings.Contains(out.Stdout, "got  allow") || !strings.Contains(out.Stderr, "1 of 3 lines") {
		t.Errorf("got:\n%s%s", out.Stdout, out.Stderr)
	}
	out = run(t, nil, exitError, "", "rules", "test", "--file", rules, bad, "-o", "json")
	var reports struct {
		Traces []traceReport
	}
	if err := json.Unmarshal([]byte(out.Stdout), &reports); err != nil || len(reports.Traces) != 1 || reports.Traces[0].Differences[0].Line != 3 {
		t.Errorf("got %+v, %v", reports, err)
	}
}

func TestRulesTest_RefusesFaultyRulesAndTraces(t *testing.T) {
	t.Parallel()
	rules, trace := writeFile(t, "rules.toml", twoRules), writeFile(t, "a.trace", "at 0s user=a allow\n")
	run(t, nil, exitError, "limit is 0", "rules", "test", "-f", writeFile(t, "r.toml", strings.Replace(twoRules, "limit = 2", "limit = 0", 1)), trace)
	run(t, nil, exitError, "b.trace:1:", "rules", "test", "-f", rules, trace, writeFile(t, "b.trace", "at noon user=a\n"))
	run(t, nil, exitUsage, "--file", "rules", "test", trace)
	run(t, nil, exitUsage, "rules test --help", "rules", "test", "-f", rules)
	run(t, nil, exitUsage, "no rules file", "rules", "test", "-f", trace, trace)
	run(t, nil, exitError, "no such files", "rules", "test", "-f", rules, t.TempDir())
}
