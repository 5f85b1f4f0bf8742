package telemetry

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sluicehq/sluice"
)

// Metrics counts what a node does, for Prometheus. It is safe for concurrent use. No label ever holds what a client
// sent: rules and namespaces are those of the rule set, and bounded in number.
type Metrics struct {
	registry   *prometheus.Registry
	breakerErr error

	decisions   *prometheus.CounterVec
	results     *prometheus.CounterVec
	duration    prometheus.Histogram
	storeErrors map[string]prometheus.Counter
	breakers    *prometheus.GaugeVec
	tailDropped prometheus.Counter

	revision, loaded, faults, rulesLoadedAt prometheus.Gauge
	configLoadedAt                          prometheus.Gauge
	configFailures                          prometheus.Counter

	mu     sync.Mutex // held while the rules are replaced
	series atomic.Pointer[seriesSet]
}

// MetricsOptions tune Metrics. The zero value works.
type MetricsOptions struct {
	// Version and Node are told by sluice_build_info. Default: none.
	Version, Node string
	// ErrBreaker is what a store's errors wrap when a breaker kept it from being asked. Default: no error is of that kind.
	ErrBreaker error
	// MaxRules bounds the rules with series of their own; those beyond count together as rule "_other". Default 10,000.
	MaxRules int
}

// durationBuckets lie around the deadline of 10 ms, in which every decision is made: how close decisions come to it, and by
// how much any exceeds it, is what the histogram is for.
var durationBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .0075, .01, .0125, .015, .02, .05, .1, .5}

// NewMetrics registers all series with a registry, together with those of the Go runtime and the process.
func NewMetrics(registry *prometheus.Registry, opts MetricsOptions) *Metrics {
	if opts.MaxRules <= 0 {
		opts.MaxRules = 10_000
	}
	add := adder{registry}
	m := &Metrics{
		registry:   registry,
		breakerErr: opts.ErrBreaker,
		decisions: add.counters("sluice_decisions_total",
			"Decisions, each once, by the rule that was decisive (empty where none was), the outcome, and how it was made.", "namespace", "rule", "outcome", "mode"),
		results: add.counters("sluice_rule_results_total",
			"What each rule that applied said, whatever the decision was.", "namespace", "rule", "result"),
		breakers:       add.gauges("sluice_breaker_open", "1 while the breaker of a shard keeps it from being asked.", "shard"),
		tailDropped:    add.counter("sluice_tail_dropped_total", "Events that readers of the live tail were too slow for."),
		revision:       add.gauge("sluice_rules_revision", "Revision of the rule set in force."),
		loaded:         add.gauge("sluice_rules_loaded", "Rules in force, disabled ones included."),
		faults:         add.gauge("sluice_rules_faults", "Faults found when the rules were last read; the last good rules stay in force."),
		rulesLoadedAt:  add.gauge("sluice_rules_last_success_timestamp_seconds", "When rules were last put in force."),
		configLoadedAt: add.gauge("sluice_config_reload_success_timestamp_seconds", "When the configuration was last read without a fault."),
		configFailures: add.counter("sluice_config_reload_failures_total", "Times that a changed configuration had faults and was not taken."),
		storeErrors:    map[string]prometheus.Counter{},
	}
	m.duration = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "sluice_decision_duration_seconds", Help: "Time from question to decision, the counter store's answer included.", Buckets: durationBuckets,
		// Scrapers that ask for native histograms get them as well: at most 10 % between two buckets, and a bound on their number.
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160, NativeHistogramMinResetDuration: time.Hour,
	})
	registry.MustRegister(m.duration, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	errs := add.counters("sluice_store_errors_total", "Decisions for which the counter store gave no answer, by the first cause.", "kind")
	for _, kind := range []string{kindTimeout, kindBreaker, kindOther} {
		m.storeErrors[kind] = errs.WithLabelValues(kind)
	}
	add.gauges("sluice_build_info", "Always 1.", "version", "goversion", "node").WithLabelValues(opts.Version, runtime.Version(), opts.Node).Set(1)
	m.series.Store(newSeriesSet(m, opts.MaxRules))
	return m
}

// Sources are read whenever metrics are scraped. All are required.
type Sources struct {
	// InFlight is the number of questions under way.
	InFlight func() int
	// Overloaded is how many questions were turned away unseen so far.
	Overloaded func() int64
	// Nodes is the number of nodes alive.
	Nodes func() int
}

// Watch registers what other parts of the node know.
func (m *Metrics) Watch(s Sources) {
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sluice_in_flight", Help: "Questions under way."},
			func() float64 { return float64(s.InFlight()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "sluice_overloaded_total", Help: "Questions turned away because too many were under way."},
			func() float64 { return float64(s.Overloaded()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sluice_nodes", Help: "Nodes alive, as this one last heard."},
			func() float64 { return float64(s.Nodes()) }),
	)
}

// Count registers a number that another part of the node keeps and that only grows.
func (m *Metrics) Count(name, help string, read func() int64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(read()) }))
}

// Gauge registers a number that another part of the node keeps and that goes up and down.
func (m *Metrics) Gauge(name, help string, read func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
}

// Handler answers scrapes.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
}

// RulesFailed tells that rules were read and not taken, or taken in part.
func (m *Metrics) RulesFailed(faults int) { m.faults.Set(float64(faults)) }

// ConfigReloaded tells how reading the configuration ended.
func (m *Metrics) ConfigReloaded(err error) {
	if err != nil {
		m.configFailures.Inc()
		return
	}
	m.configLoadedAt.SetToCurrentTime()
}

// The kinds of store errors.
const (
	kindTimeout = "timeout"
	kindBreaker = "breaker"
	kindOther   = "other"
)

func (m *Metrics) storeFailed(err error) {
	kind := kindOther
	switch {
	case m.breakerErr != nil && errors.Is(err, m.breakerErr):
		kind = kindBreaker
	case errors.Is(err, context.DeadlineExceeded):
		kind = kindTimeout
	}
	m.storeErrors[kind].Inc()
}

// decided counts a decision. Nothing on its way looks up a label or allocates, once each outcome has happened.
func (m *Metrics) decided(req *sluice.Request, d *sluice.Decision, took time.Duration) {
	m.duration.Observe(took.Seconds())
	if d.StoreErr != nil {
		m.storeFailed(d.StoreErr)
	}
	set := m.series.Load()
	decisive := decisiveRule(d)
	if decisive == nil {
		set.ofNamespace(req.Namespace).decided(outcomeOf(d), d.Mode)
	}
	results := d.Results()
	for i := 0; i < len(results); {
		rule := results[i].Rule
		s := set.of(rule)
		said, weakest := resultPassed, sluice.Exact
		for ; i < len(results) && results[i].Rule == rule; i++ { // a rule's limits stand together
			r := &results[i]
			if !r.Allowed {
				said = refusalOf(rule)
			}
			weakest = max(weakest, r.Mode)
		}
		if weakest > sluice.Leased {
			s.without[weakest].Add(1)
		}
		s.said(said)
		if rule == decisive {
			s.decided(outcomeOf(d), d.Mode)
		}
	}
}

// decisiveRule is the rule that a decision is counted for; nil when no rule had a say.
func decisiveRule(d *sluice.Decision) *sluice.Rule {
	if t := d.Tightest(); t != nil {
		return t.Rule
	}
	if results := d.Results(); len(results) > 0 { // a rule that blocks, or none but shadow rules
		return results[0].Rule
	}
	return nil
}
