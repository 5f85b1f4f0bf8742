package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	tracesdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluicehq/sluice"
)

// Traces records one span per decision. Nil records nothing and costs nothing. It is safe for concurrent use.
type Traces struct {
	provider *tracesdk.TracerProvider
	tracer   trace.Tracer
}

// NewTraces reads the standard OTEL_* variables. It returns nil when they ask for no traces: when none of
// OTEL_TRACES_EXPORTER, OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set, or
// OTEL_SDK_DISABLED is true. Without OTEL_TRACES_SAMPLER a decision is traced when its caller's trace is, and always when the caller has none.
//
// The exporter reports its troubles to a handler that all of OpenTelemetry shares; NewTraces sets it to write to log.
func NewTraces(ctx context.Context, version string, log *slog.Logger) (*Traces, error) {
	if !tracesWanted() {
		return nil, nil //nolint:nilnil // nil is a Traces that records nothing
	}
	exporter, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		return nil, fmt.Errorf("set up traces by the OTEL_ variables: %w", err)
	}
	if autoexport.IsNoneSpanExporter(exporter) {
		return nil, nil //nolint:nilnil // as above
	}
	return newTraces(ctx, version, log, tracesdk.WithBatcher(exporter))
}

func newTraces(ctx context.Context, version string, log *slog.Logger, to tracesdk.TracerProviderOption) (*Traces, error) {
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "sluice"), attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("describe this node for traces: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces are not delivered", "error", err) }))
	provider := tracesdk.NewTracerProvider(to, tracesdk.WithResource(about))
	return &Traces{provider: provider, tracer: provider.Tracer("github.com/sluicehq/sluice")}, nil
}

func tracesWanted() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	for _, name := range []string{"OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} {
		if os.Getenv(name) != "" {
			return true
		}
	}
	return false
}

// Shutdown delivers what is left.
func (t *Traces) Shutdown(ctx context.Context) error {
	if t == nil {
		return nil
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("deliver the last traces: %w", err)
	}
	return nil
}

// FromHTTP puts the caller's trace into ctx, as its header tells it.
func (t *Traces) FromHTTP(ctx context.Context, header http.Header) context.Context {
	if t == nil {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(header))
}

// FromGRPC puts the caller's trace into ctx, as the incoming metadata (a metadata.MD) tells it.
func (t *Traces) FromGRPC(ctx context.Context, metadata map[string][]string) context.Context {
	if t == nil {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, grpcCarrier(metadata))
}

// ToHTTP tells the trace in ctx to whom a request is passed on to.
func (t *Traces) ToHTTP(ctx context.Context, header http.Header) {
	if t != nil {
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
	}
}

// grpcCarrier reads metadata, whose names are in lower case as those of W3C Trace Context are.
type grpcCarrier map[string][]string

// Get implements propagation.TextMapCarrier.
func (c grpcCarrier) Get(name string) string {
	if values := c[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// Set implements propagation.TextMapCarrier.
func (c grpcCarrier) Set(name, value string) { c[name] = []string{value} }

// Keys implements propagation.TextMapCarrier.
func (c grpcCarrier) Keys() []string {
	names := make([]string, 0, len(c))
	for name := range c {
		names = append(names, name)
	}
	return names
}

// decided records the span of a decision that has been made, and returns the id of its trace.
func (t *Traces) decided(ctx context.Context, req *sluice.Request, d *sluice.Decision, began time.Time, took time.Duration) trace.TraceID {
	_, span := t.tracer.Start(ctx, "sluice.check", trace.WithTimestamp(began))
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String("sluice.namespace", namespaceOf(req)),
			attribute.String("sluice.outcome", outcomeOf(d).String()),
			attribute.String("sluice.mode", d.Mode.String()),
			attribute.Int64("sluice.cost", d.Cost),
			attribute.String("sluice.decision", d.ID.String()),
		)
		if rule := decisiveRule(d); rule != nil {
			span.SetAttributes(attribute.String("sluice.rule", rule.Name))
		}
	}
	span.End(trace.WithTimestamp(began.Add(took)))
	return span.SpanContext().TraceID()
}
