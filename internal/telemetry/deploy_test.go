package telemetry

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
)

const (
	alertsDir  = "../../deploy/prometheus"
	operations = "../../docs/operations.md"
)

func TestAlerts_FireWhenTheyShouldUnderTheRealPromtool(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Fatal("promtool is missing: make deps installs it, with the package prometheus")
	}
	for _, args := range [][]string{{"check", "rules", "recording.yaml", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		cmd := exec.CommandContext(t.Context(), "promtool", args...)
		cmd.Dir = alertsDir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// exported returns the names of all metrics of ours, with a rule that has met everything.
func exported(t *testing.T) map[string]bool {
	t.Helper()
	b := newBed(t, userRule("r", 1))
	b.metrics.Watch(Sources{InFlight: func() int { return 0 }, Overloaded: func() int64 { return 0 }, Nodes: func() int { return 1 }})
	b.outages.Breaker("redis", true)
	b.check(t, byUser("u_1"))
	b.store.fail(context.DeadlineExceeded)
	b.check(t, sluice.Request{Subject: sluice.Subject{User: "u_1"}})
	names := map[string]bool{}
	for line := range strings.Lines(b.scrape(t)) {
		if fields := strings.Fields(line); len(fields) == 4 && fields[1] == "TYPE" && strings.HasPrefix(fields[2], "sluice_") {
			names[fields[2]] = true
		}
	}
	return names
}

// ofTheDatabase are metrics that nodes with a database have. Others count them; a test of internal/app compares them with docs/operations.md.
var ofTheDatabase = regexp.MustCompile(`^sluice_(directory|database)_`)

var (
	metricName = regexp.MustCompile(`\bsluice_[a-z_]+[a-z]`)
	suffix     = regexp.MustCompile(`_(bucket|count|sum)$`)
)

func TestAlerts_AskOnlyForMetricsThatExist(t *testing.T) {
	t.Parallel()
	names := exported(t)
	for _, file := range []string{"alerts.yaml", "recording.yaml"} {
		text, err := os.ReadFile(filepath.Join(alertsDir, file))
		if err != nil {
			t.Fatal(err)
		}
		recorded := regexp.MustCompile(`[a-z_]+:sluice_[a-z_]+:[a-z0-9_]+`)
		for _, name := range metricName.FindAllString(recorded.ReplaceAllString(string(text), ""), -1) {
			if !names[name] && !names[suffix.ReplaceAllString(name, "")] && !ofTheDatabase.MatchString(name) {
				t.Errorf("%s asks for %s, which no node has", file, name)
			}
		}
	}
}

func TestOperations_ListEveryMetricAndEveryAlert(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(operations)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	names := exported(t)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !strings.Contains(page, "`"+name) {
			t.Errorf("%s is not in docs/operations.md", name)
		}
	}
	for _, name := range metricName.FindAllString(page, -1) {
		if !names[name] && !names[suffix.ReplaceAllString(name, "")] && !ofTheDatabase.MatchString(name) {
			t.Errorf("docs/operations.md tells of %s, which no node has", name)
		}
	}
	alerts, err := os.ReadFile(filepath.Join(alertsDir, "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(string(alerts), -1) {
		if !strings.Contains(page, "`"+found[1]+"`") {
			t.Errorf("alert %s is not in docs/operations.md", found[1])
		}
	}
}
