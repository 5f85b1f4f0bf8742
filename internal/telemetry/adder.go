package telemetry

import "github.com/prometheus/client_golang/prometheus"

// adder makes metrics and registers them. A name given twice is a bug, so it panics.
type adder struct{ registry *prometheus.Registry }

func (a adder) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	a.registry.MustRegister(c)
	return c
}

func (a adder) counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	a.registry.MustRegister(c)
	return c
}

func (a adder) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	a.registry.MustRegister(g)
	return g
}

func (a adder) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	a.registry.MustRegister(g)
	return g
}
