package ruletest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/ruledoc"
)

const searchRules = `
[[rule]]
name = "everyone"
key = ["user"]
limits = [{ algorithm = "fixed_window", limit = 10, window = "1h" }]

[[rule]]
name = "search"
match = { routes = ["/api/search"] }
key = ["user", "route"]
limits = [{ algorithm = "sliding_log", limit = 3, window = "1m" }]

[[rule]]
name = "queue"
match = { attributes = { job = "mail" } }
key = ["job"]
limits = [{ algorithm = "token_bucket", limit = 1, window = "1s", burst = 1 }]
action = "throttle"
max_delay = "5s"

[[rule]]
name = "watched"
layer = "watched"
key = ["user"]
limits = [{ algorithm = "fixed_window", limit = 1, window = "1h" }]
action = "shadow"

[[rule]]
name = "closed"
match = { routes = ["/closed"] }
action = "block"

[[exemption]]
user = "monitoring"

[[block]]
user = "mallory"
reason = "abuse"
`

func rulesOf(t *testing.T, text string) Rules {
	t.Helper()
	parsed, faults := ruledoc.Decode("rules.toml", ruledoc.TOML, []byte(text))
	rules, found := NewRules(parsed)
	if err := ruledoc.Join(append(faults, found...)); err != nil {
		t.Fatal(err)
	}
	return rules
}

func run(t *testing.T, trace string) []Difference {
	t.Helper()
	tr, err := Parse("a.trace", trace)
	if err != nil {
		t.Fatal(err)
	}
	differences, err := tr.Run(t.Context(), rulesOf(t, searchRules))
	if err != nil {
		t.Fatal(err)
	}
	return differences
}

func TestRun_ATraceThatIsTrueHasNoDifferences(t *testing.T) {
	t.Parallel()
	for _, d := range run(t, `
# times are the trace's own
start 2026-11-15T12:00:00Z
at 0s    user=u_42 route=/api/search                  allow rule=search remaining=2 remaining.everyone=9 cost=1 cause=limits
at 12s   2 times user=u_42 route=/api/search          admitted=2
at 12s   user=u_42 route=/api/search               -> refuse rule=search retry=48s remaining=0 says.everyone=allow
at 12s   peek user=u_42 route=/api/search             refuse retry=48000ms
at 1m    user=u_42 route=/api/search                  allow says.watched=refuse
at 1m    user=u_42 cost=11                            refuse rule=everyone retry=never
at 1m    reset user=u_42
at 1m    user=u_42                                    allow remaining=9
at 1m    refund user=u_42 cost=1
at 1m    peek user=u_42                               allow remaining=10
at 1m    user=monitoring route=/closed                allow cause=exempt
at 1m    user=mallory                                 refuse cause=blocked_by_list retry=never
at 1m    ip=192.0.2.1 route=/closed                   refuse cause=blocked_by_rule rule=closed
at 1m    ip=192.0.2.1 note="free trial" # a comment   # and more
at 2m    job=mail                                     allow
at 2m    job=mail                                     allow delay=1s
at 1d    100 times user=u_42                          admitted=10
at 1d    namespace=other user=u_42                    allow cause=no_rule rule=none`) {
		t.Error(d)
	}
}

func TestRun_TellsTheLineThatDiffers(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"at 0s user=a route=/api/search allow remaining=3":    "want allow remaining=3\n  got  allow remaining=2",
		"at 0s user=a refuse":                                 "got  allow cause=limits rule=everyone remaining=9",
		"at 0s user=a cost=11 allow":                          "got  refuse cause=limits rule=everyone remaining=10 retry=never",
		"at 0s 5 times user=a route=/api/search admitted=4":   "got  admitted=3",
		"at 0s user=a allow rule=search":                      "got  allow rule=everyone",
		"at 0s user=a allow remaining.search=3":               "got  allow remaining.search=none",
		"at 0s user=mallory allow":                            "abuse",
		"at 0s job=mail refuse retry=1s delay=1s":             "delay=0s",
		"at 0s ip=192.0.2.1 allow cause=limits remaining=007": "cause=no_rule remaining=none",
	} {
		got := run(t, "# first\n\n"+line)
		if len(got) != 1 || got[0].Line != 3 || got[0].Text != line || !strings.Contains(got[0].String(), want) {
			t.Errorf("%s: got %v, want %q", line, got, want)
		}
	}
}

func TestRun_AlwaysEndsTheSame(t *testing.T) {
	t.Parallel()
	tr, err := Parse("a.trace", "at 0s 5 times user=a route=/api/search admitted=3\nat 0s user=b route=/api/search allow")
	if err != nil {
		t.Fatal(err)
	}
	rules := rulesOf(t, searchRules)
	for range 3 { // each time on empty counters
		if d, err := tr.Run(t.Context(), rules); err != nil || len(d) > 0 {
			t.Errorf("got %v, %v", d, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tr.Run(ended, rules); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
}

func TestRun_TellsTheLineOfARequestThatCannotBe(t *testing.T) {
	t.Parallel()
	tr, err := Parse("a.trace", "at 0s user=a route=/api/search allow\nat 1s refund user=a route=/api/search cost=1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Run(t.Context(), rulesOf(t, searchRules)); err == nil || !strings.Contains(err.Error(), "a.trace:2:") {
		t.Errorf("got %v, want the line, since a sliding log takes nothing back", err)
	}
}

func TestParse_ReportsEveryFaultWithItsLine(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"after 1s user=a":                          "begins with at or start",
		"at":                                       "nothing happens",
		"at 1s":                                    "nothing happens",
		"at soon user=a":                           "not a duration",
		"at -1s user=a":                            "order of time",
		"at 1s user=a user=b":                      "twice",
		"at 1s user=":                              "not name=value",
		"at 1s allow":                              "who asks",
		"at 1s ip=nonsense":                        "no address",
		"at 1s user=a cost=0":                      "from 1",
		"at 1s user=a perhaps":                     "want allow or refuse",
		"at 1s user=a ->":                          "nothing is expected",
		"at 1s user=a allow remaining":             "want name=value",
		"at 1s user=a allow remaining=few":         "whole number",
		"at 1s user=a allow retry=soon":            "not a duration",
		"at 1s user=a allow delay=never":           "not a duration",
		"at 1s user=a allow cause=luck":            "want one of",
		"at 1s user=a allow says.search=perhaps":   "allow or refuse",
		"at 1s user=a allow left=3":                "cannot be expected",
		"at 1s user=a allow cost.search=3":         "cannot be expected",
		"at 1s 0 times user=a":                     "from 1",
		"at 1s 3 times user=a admitted=4":          "from 0 to 3",
		"at 1s 3 times user=a allow":               "admitted=N",
		"at 1s reset user=a allow":                 "decides nothing",
		"at 1s user=\"a":                           "not closed",
		"at 1s user=a\nat 0s user=a":               "order of time",
		"at 1s user=a\nstart 2026-01-01T00:00:00Z": "above",
		"start today":                              "no instant",
		"start":                                    "an instant",
		"":                                         "nothing happens",
		"at x user=a\nat 1s user=a left\nat 1s nonsense": "a.trace:2: \"left\"",
	} {
		if _, err := Parse("a.trace", line); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "a.trace:") {
			t.Errorf("%q: got %v, want %q", line, err, want)
		}
	}
}

func TestExamples_AreTrue(t *testing.T) {
	t.Parallel()
	traces, err := filepath.Glob("../../examples/traces/*.trace")
	if err != nil || len(traces) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, name := range traces {
		policy := strings.TrimSuffix(filepath.Base(name), ".trace") + ".toml"
		rules, err := os.ReadFile(filepath.Join("../../examples/policies", policy))
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		tr, err := Parse(name, string(text))
		if err != nil {
			t.Fatal(err)
		}
		differences, err := tr.Run(t.Context(), rulesOf(t, string(rules)))
		if err != nil {
			t.Error(err)
		}
		for _, d := range differences {
			t.Error(d)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("start 2026-11-15T12:00:00Z\nat 0s 3 times user=a note=\"b c\" admitted=2 # end")
	f.Add("at 1d refund ip=::1 cost=3\nat 2d peek user=a -> refuse rule=search retry=never remaining.a.b=1")
	f.Fuzz(func(t *testing.T, text string) {
		tr, err := Parse("fuzz", text)
		if err != nil {
			return
		}
		if tr.Len() == 0 {
			t.Error("a trace in which nothing happens was taken")
		}
		for _, s := range tr.steps {
			if s.times > maxTimes || s.expect.admitted > s.times || s.at < 0 {
				t.Errorf("step %+v", s)
			}
		}
	})
}
