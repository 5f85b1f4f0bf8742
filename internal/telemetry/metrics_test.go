package telemetry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice"
)

func TestMetrics_CountEachDecisionOnceByItsDecisiveRule(t *testing.T) {
	t.Parallel()
	b := newBed(t, userRule("tight", 1), userRule("wide", 1000))
	b.check(t, byUser("u_1"))
	b.check(t, byUser("u_1"))
	b.check(t, byUser("u_2"))
	b.check(t, sluice.Request{}) // no user: no rule matches
	wantSeries(t, b.scrape(t),
		`sluice_decisions_total{mode="exact",namespace="default",outcome="allowed",rule="tight"} 2`,
		`sluice_decisions_total{mode="exact",namespace="default",outcome="refused",rule="tight"} 1`,
		`sluice_decisions_total{mode="exact",namespace="default",outcome="no_rule",rule=""} 1`,
		`sluice_rule_results_total{namespace="default",result="passed",rule="tight"} 2`,
		`sluice_rule_results_total{namespace="default",result="refused",rule="tight"} 1`,
		`sluice_rule_results_total{namespace="default",result="passed",rule="wide"} 3`,
		`sluice_decision_duration_seconds_count 4`)
}

func TestMetrics_ShadowRefusalsAreSeenWhileRequestsPass(t *testing.T) {
	t.Parallel()
	shadow := userRule("candidate", 1)
	shadow.Action = sluice.Shadow
	b := newBed(t, shadow)
	b.check(t, byUser("u_1"))
	b.check(t, byUser("u_1"))
	wantSeries(t, b.scrape(t),
		`sluice_decisions_total{mode="exact",namespace="default",outcome="allowed",rule="candidate"} 2`,
		`sluice_rule_results_total{namespace="default",result="shadow_refused",rule="candidate"} 1`)
}

func TestMetrics_OutcomesTellCauses(t *testing.T) {
	t.Parallel()
	block := sluice.Rule{Name: "no-bots", Action: sluice.Block, Match: sluice.Match{Users: []string{"bot"}}}
	throttle := sluice.Rule{
		Name: "smooth", Layer: "smooth", Key: []sluice.Dimension{sluice.User}, Action: sluice.Throttle, MaxDelay: time.Minute,
		Limits: []sluice.Limit{sluice.Bucket(60, time.Minute, 1)},
	}
	b := newBed(t, block, throttle)
	b.check(t, byUser("bot"))
	b.check(t, byUser("u_1"))
	b.check(t, byUser("u_1"))
	blocked := byUser("u_2")
	blocked.Subject.Blocked = &sluice.BlockedSubject{Reason: "fraud"}
	b.check(t, blocked)
	exempt := byUser("u_3")
	exempt.Subject.Exempt = true
	b.check(t, exempt)
	b.limiter.SetEnabled(false)
	b.check(t, byUser("u_4"))
	wantSeries(t, b.scrape(t),
		`sluice_decisions_total{mode="exact",namespace="default",outcome="blocked",rule="no-bots"} 1`,
		`sluice_decisions_total{mode="exact",namespace="default",outcome="delayed",rule="smooth"} 1`,
		`sluice_decisions_total{mode="exact",namespace="default",outcome="blocked",rule=""} 1`,
		`sluice_decisions_total{mode="exact",namespace="default",outcome="exempt",rule=""} 1`,
		`sluice_decisions_total{mode="exact",namespace="default",outcome="disabled",rule=""} 1`)
}

func TestMetrics_InventedNamespacesShareOneSeries(t *testing.T) {
	t.Parallel()
	b := newBed(t, userRule("r", 10))
	for i := range 100 {
		req := byUser("u_1")
		req.Namespace = fmt.Sprintf("invented-%d", i)
		b.check(t, req)
	}
	scraped := b.scrape(t)
	if strings.Contains(scraped, "invented") {
		t.Errorf("a namespace that a caller invented became a label:\n%s", ours(scraped))
	}
	wantSeries(t, scraped, `sluice_decisions_total{mode="exact",namespace="_other",outcome="no_rule",rule="_other"} 100`)
}

func TestMetrics_NothingOfTheClientIsInThem(t *testing.T) {
	t.Parallel()
	b := newBed(t, userRule("r", 1))
	for range 3 {
		b.check(t, sluice.Request{
			Subject: sluice.Subject{User: "secret-user", Tenant: "secret-tenant", APIKey: "secret-key"},
			Route:   "/secret-route", Method: "SECRET", Attributes: map[string]string{"secret-name": "secret-value"},
		})
	}
	if scraped := b.scrape(t); strings.Contains(strings.ToLower(scraped), "secret") {
		t.Errorf("metrics hold what a client sent:\n%s", ours(scraped))
	}
}

func TestMetrics_ReplacedRulesKeepCountingAndGoneOnesLoseTheirSeries(t *testing.T) {
	t.Parallel()
	b := newBed(t, userRule("stays", 10), userRule("goes", 10))
	b.check(t, byUser("u_1"))
	old := b.limiter.Rules()
	next := compile(t, userRule("stays", 20)).WithRevision(7)
	b.metrics.SetRules(next, 2)

	b.check(t, byUser("u_1")) // began with the rules before
	b.limiter.SetRules(next)
	b.check(t, byUser("u_1"))

	scraped := b.scrape(t)
	wantSeries(t, scraped,
		`sluice_rule_results_total{namespace="default",result="passed",rule="stays"} 3`,
		`sluice_rules_revision 7`, `sluice_rules_loaded 1`, `sluice_rules_faults 2`)
	if strings.Contains(scraped, `rule="goes"`) {
		t.Errorf("a rule that is gone has series:\n%s", ours(scraped))
	}
	if set := b.metrics.series.Load(); len(set.byRule) != 1 || len(set.byName) != 2 {
		t.Errorf("series of %d rules and %d names are held, want 1 and 2 (with the namespace's)", len(set.byRule), len(set.byName))
	}
	for rule := range old.Rules() {
		if b.metrics.series.Load().byRule[rule] != nil {
			t.Errorf("rule %q of the old set is held", rule.Name)
		}
	}
}

func TestMetrics_RulesBeyondTheBoundCountTogether(t *testing.T) {
	t.Parallel()
	m := NewMetrics(prometheus.NewRegistry(), MetricsOptions{MaxRules: 2})
	set := compile(t, userRule("a", 10), userRule("b", 10), userRule("c", 10), userRule("d", 10))
	m.SetRules(set, 0)
	for rule := range set.Rules() {
		m.series.Load().of(rule).said(resultPassed)
	}
	b := &bed{metrics: m}
	wantSeries(t, b.scrape(t),
		`sluice_rule_results_total{namespace="default",result="passed",rule="a"} 1`,
		`sluice_rule_results_total{namespace="_other",result="passed",rule="_other"} 2`)
}

func TestMetrics_StoreErrorsAreTimeoutsBreakersOrOthers(t *testing.T) {
	t.Parallel()
	b := newBed(t, userRule("r", 10))
	for _, err := range []error{context.DeadlineExceeded, errFakeBreaker, errFakeBreaker, errors.New("LOADING")} {
		b.store.fail(err)
		b.check(t, byUser("u_1"))
	}
	wantSeries(t, b.scrape(t),
		`sluice_store_errors_total{kind="timeout"} 1`,
		`sluice_store_errors_total{kind="breaker"} 2`,
		`sluice_store_errors_total{kind="other"} 1`,
		`sluice_decisions_total{mode="local",namespace="default",outcome="allowed",rule="r"} 4`)
}

func TestMetrics_TellOfOtherParts(t *testing.T) {
	t.Parallel()
	b := newBed(t, userRule("r", 10))
	b.metrics.Watch(Sources{
		InFlight: func() int { return 3 }, Overloaded: func() int64 { return 4 }, Nodes: func() int { return 5 },
	})
	b.metrics.Count("sluice_counted_total", "Counted elsewhere.", func() int64 { return 7 })
	b.metrics.Gauge("sluice_measured", "Measured elsewhere.", func() float64 { return 0.5 })
	b.metrics.ConfigReloaded(errors.New("faulty"))
	b.metrics.RulesFailed(6)
	wantSeries(t, b.scrape(t), "sluice_counted_total 7", "sluice_measured 0.5", "sluice_in_flight 3", "sluice_overloaded_total 4", "sluice_nodes 5",
		"sluice_config_reload_failures_total 1", "sluice_config_reload_success_timestamp_seconds 0", "sluice_rules_faults 6", "sluice_degraded 0")
	b.metrics.ConfigReloaded(nil)
	if strings.Contains(b.scrape(t), "\nsluice_config_reload_success_timestamp_seconds 0\n") {
		t.Error("a reload that succeeded left no time")
	}
}

func TestObserver_AllocatesNothingOnTheCommonPath(t *testing.T) {
	b := newBed(t, userRule("a", 1<<20), userRule("b", 1<<20))
	req := byUser("u_1")
	d := b.check(t, req)
	began := time.Now()
	if n := testing.AllocsPerRun(100, func() { b.observer.Decided(t.Context(), &req, &d, began, someTime) }); n != 0 {
		t.Errorf("Decided allocates %v times, want 0", n)
	}
}

func BenchmarkObserver(b *testing.B) {
	for _, n := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			var rules []sluice.Rule
			for i := range n {
				rules = append(rules, userRule(fmt.Sprint("rule-", i), 1<<20))
			}
			bed := newBed(b, rules...)
			req := byUser("u_1")
			d := bed.check(b, req)
			began := time.Now()
			b.ReportAllocs()
			for b.Loop() {
				bed.observer.Decided(b.Context(), &req, &d, began, someTime)
			}
		})
	}
}
