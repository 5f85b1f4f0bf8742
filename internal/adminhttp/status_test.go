package adminhttp

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

func TestStatus_TellsOfRulesStoreAndFaults(t *testing.T) {
	t.Parallel()
	since := time.Now().Add(-time.Minute).Round(0)
	b := newBed(t, setup{rules: []sluice.Rule{userRule("api", 1)}, change: func(o *Options) {
		o.Status = func() Status {
			return Status{
				Version: "v1.2.3", Node: "node-a", Started: since, Enabled: true, Nodes: 3, InFlight: 4, RestartNeeded: []string{"http.listen"},
				Rules: RulesStatus{Loaded: since, Faults: RuleFaults([]ruledoc.Fault{{File: "rules.d/a.toml", Line: 7, Column: 2, Entry: `rule "login"`, Field: "limits", Err: errors.New("is empty")}})},
				Store: StoreStatus{Kind: "redis", DegradedSince: since, BreakersOpen: []string{"redis"}, LastError: "deadline exceeded"},
			}
		}
	}})
	text := b.ask(t, "GET", "/v1/status", "", http.StatusOK, nil)
	for _, want := range []string{
		`"version":"v1.2.3"`, `"node":"node-a"`, `"uptime_seconds":60`, `"enabled":true`, `"ready":true`, `{"name":"rules","state":"ok"}`,
		`"revision":3,"count":1`, `{"file":"rules.d/a.toml","line":7,"column":2,"entry":"rule \"login\"","field":"limits","detail":"is empty"}`,
		`"kind":"redis","degraded_since":"`, `"breakers_open":["redis"]`, `"last_error":"deadline exceeded"`, `"nodes":3`, `"in_flight":4`, `"restart_needed":["http.listen"]`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}

func TestStatus_OfAHealthyNodeHasNoFaults(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{})
	text := b.ask(t, "GET", "/v1/status", "", http.StatusOK, nil)
	for _, not := range []string{"faults", "degraded_since", "last_error", "breakers_open", "restart_needed", "config_fault"} {
		if strings.Contains(text, not) {
			t.Errorf("%q in %s", not, text)
		}
	}
}

func TestRules_AreShownAsTheyCouldBeWritten(t *testing.T) {
	t.Parallel()
	other := userRule("partner", 7)
	other.Namespace = "partners"
	b := newBed(t, setup{rules: []sluice.Rule{userRule("api", 10), other}})
	var got struct {
		Revision int
		Rules    []ruledoc.Rule
	}
	b.ask(t, "GET", "/v1/rules", "", http.StatusOK, &got)
	if got.Revision != 3 || len(got.Rules) != 2 || got.Rules[0].Name != "api" {
		t.Fatalf("got %+v", got)
	}
	back, err := got.Rules[0].ToRule()
	if err != nil || len(back.Limits) != 1 || back.Limits[0] != sluice.PerHour(10) {
		t.Errorf("read back: %+v, %v", back, err)
	}
	b.ask(t, "GET", "/v1/rules?namespace=partners", "", http.StatusOK, &got)
	if len(got.Rules) != 1 || got.Rules[0].Name != "partner" {
		t.Errorf("of one namespace: %+v", got.Rules)
	}
}

func TestDoor_ServesExplainMetricsAndProfiles(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{rules: []sluice.Rule{userRule("api", 10)}, change: withPprof})
	if got := b.ask(t, "POST", "/v1/explain", `{"subject":{"user":"u_42"}}`, http.StatusOK, nil); !strings.Contains(got, `"applies":true`) {
		t.Errorf("explain: %s", got)
	}
	if got := b.call(t, "GET", "/metrics", "").Body.String(); !strings.Contains(got, "sluice_rules_loaded 1") {
		t.Errorf("metrics: %s", got)
	}
	if got := b.ask(t, "GET", "/debug/pprof/", "", http.StatusOK, nil); !strings.Contains(got, "goroutine") {
		t.Errorf("profiles: %s", got)
	}
	b.ask(t, "GET", "/debug/pprof/cmdline", "", http.StatusNotFound, nil)
	b.ask(t, "GET", "/unknown", "", http.StatusNotFound, nil)
	newBed(t, setup{}).ask(t, "GET", "/debug/pprof/", "", http.StatusNotFound, nil)
}
