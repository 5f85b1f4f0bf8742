package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice"
)

// Outages notices that decisions are made without the counter store, and tells it once when it begins, every ten seconds
// while it lasts, and once when it is over, however many decisions there are. It is safe for concurrent use.
type Outages struct {
	metrics *Metrics
	log     *slog.Logger
	now     func() time.Time

	on    atomic.Bool  // an outage is under way
	last  atomic.Int64 // when a decision was last made without the store, in Unix nanoseconds
	proof atomic.Bool  // the store has answered since
	cause atomic.Pointer[error]
	stale atomic.Bool   // the cause was told; a newer one is welcome
	began chan struct{} // has room for one

	mu    sync.Mutex
	since time.Time
	open  map[string]bool // shards whose breaker is open
}

// An outage is over when the store has answered and no decision was made without it for quietTime. A shorter time would end
// and begin outages at every hiccup of a store in trouble. Where nobody asks, silence for silentTime has to do.
const (
	quietTime  = 5 * time.Second
	silentTime = 30 * time.Second
	// reportEvery is between two reports of a lasting outage: often enough to see it grow, rare enough to be read.
	reportEvery = 10 * time.Second
)

// NewOutages registers the gauge sluice_degraded. Run must be running for outages to be told and to end.
func NewOutages(m *Metrics, log *slog.Logger) *Outages {
	o := &Outages{metrics: m, log: log, now: time.Now, began: make(chan struct{}, 1), open: map[string]bool{}}
	m.registry.MustRegister(prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: "sluice_degraded", Help: "1 while decisions are made without the counter store."},
		func() float64 {
			if o.on.Load() {
				return 1
			}
			return 0
		}))
	return o
}

// Breaker is told when a shard's breaker opens and closes; see rueidisconn.Options.OnBreaker.
func (o *Outages) Breaker(shard string, open bool) {
	value := 0.0
	if open {
		value = 1
	}
	o.metrics.breakers.WithLabelValues(shard).Set(value)
	o.mu.Lock()
	if open {
		o.open[shard] = true
	} else {
		delete(o.open, shard)
	}
	o.mu.Unlock()
	if open {
		o.failed(nil, o.now())
	} else {
		o.proof.Store(true) // the shard answered a probe
	}
}

// OpenBreakers lists the shards whose breaker is open, in no order.
func (o *Outages) OpenBreakers() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	shards := make([]string, 0, len(o.open))
	for shard := range o.open {
		shards = append(shards, shard)
	}
	return shards
}

// Since tells when the outage under way began; the zero time when there is none.
func (o *Outages) Since() time.Time {
	if !o.on.Load() {
		return time.Time{}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.since
}

// LastError is why the store lately gave no answer; nil when there is no outage.
func (o *Outages) LastError() error {
	if cause := o.cause.Load(); cause != nil && o.on.Load() {
		return *cause
	}
	return nil
}

// decided looks at a decision. Of one that the store made it costs a load.
func (o *Outages) decided(d *sluice.Decision, at time.Time) {
	switch {
	case d.Mode > sluice.Leased:
		o.failed(d.StoreErr, at)
	case !o.on.Load() || d.Cause != sluice.ByLimits:
	case !o.proof.Load(): // a load is cheaper than a store all cores fight for
		o.proof.Store(true)
	}
}

// failed tells that the store gave no answer.
func (o *Outages) failed(err error, at time.Time) {
	o.last.Store(at.UnixNano())
	if o.proof.Load() {
		o.proof.Store(false)
	}
	if err != nil && (o.cause.Load() == nil || o.stale.Load()) {
		cause := err
		o.cause.Store(&cause)
		o.stale.Store(false)
	}
	if o.on.Load() || !o.on.CompareAndSwap(false, true) {
		return
	}
	o.mu.Lock()
	o.since = at
	o.mu.Unlock()
	select {
	case o.began <- struct{}{}:
	default: // the outage before is just being ended; Run looks again
	}
}

// Run tells of outages until ctx ends.
func (o *Outages) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-o.began:
			o.tell(ctx)
		}
	}
}

// tell follows one outage to its end.
func (o *Outages) tell(ctx context.Context) {
	since := o.Since()
	o.log.LogAttrs(ctx, slog.LevelWarn, "the counter store does not answer: each rule's on_store_error decides", o.details()...)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	reported := o.now()
	total := newTally()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := o.now()
		if o.over(now) {
			total.add(o.metrics.takeWithout())
			o.cause.Store(nil)
			o.on.Store(false)
			o.log.LogAttrs(ctx, slog.LevelInfo, "the counter store answers again: decisions are exact",
				append(total.attrs(), slog.Duration("lasted", now.Sub(since).Round(time.Millisecond)))...)
			return
		}
		if now.Sub(reported) >= reportEvery {
			reported = now
			lately := o.metrics.takeWithout()
			total.add(lately)
			attrs := append(lately.attrs(), slog.Duration("for", now.Sub(since).Round(time.Second)))
			o.log.LogAttrs(ctx, slog.LevelWarn, "decisions are being made without the counter store", append(attrs, o.details()...)...)
			o.stale.Store(true)
		}
	}
}

func (o *Outages) over(now time.Time) bool {
	o.mu.Lock()
	open := len(o.open)
	o.mu.Unlock()
	quiet := now.Sub(time.Unix(0, o.last.Load()))
	return open == 0 && (quiet >= quietTime && o.proof.Load() || quiet >= silentTime)
}

func (o *Outages) details() []slog.Attr {
	var attrs []slog.Attr
	if err := o.LastError(); err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	if shards := o.OpenBreakers(); len(shards) > 0 {
		attrs = append(attrs, slog.Any("breakers_open", shards))
	}
	return attrs
}
