package telemetry

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/sluicehq/sluice"
)

// Observer is told of every decision by the engine, and tells metrics, outages, traces and the tail. It is safe for
// concurrent use.
type Observer struct {
	// Metrics and Outages are required; Traces and Tail may be nil.
	Metrics *Metrics
	Outages *Outages
	Traces  *Traces
	Tail    *Tail
}

// Decided implements engine.Observer. It does not block; a decision of the usual kind costs it no allocation.
func (o *Observer) Decided(ctx context.Context, req *sluice.Request, d *sluice.Decision, began time.Time, took time.Duration) {
	o.Metrics.decided(req, d, took)
	o.Outages.decided(d, began.Add(took))
	var traceID trace.TraceID
	if o.Traces != nil {
		traceID = o.Traces.decided(ctx, req, d, began, took)
	}
	if o.Tail != nil && o.Tail.read() {
		o.Tail.decided(req, d, began.Add(took), traceID)
	}
}

func namespaceOf(req *sluice.Request) string {
	return cmp.Or(req.Namespace, sluice.DefaultNamespace)
}
