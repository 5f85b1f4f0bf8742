package telemetry

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	tracesdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

const (
	callersTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	callersParent = "00-" + callersTrace + "-00f067aa0ba902b7-01"
	notSampled    = "00-" + callersTrace + "-00f067aa0ba902b7-00"
)

// traced gives the bed traces that are recorded in memory.
func traced(t *testing.T, b *bed) *tracetest.InMemoryExporter {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	traces, err := newTraces(t.Context(), "v0.0.0-test", slog.New(slog.DiscardHandler), tracesdk.WithSyncer(spans))
	if err != nil {
		t.Fatal(err)
	}
	b.observer.Traces = traces
	t.Cleanup(func() { _ = traces.Shutdown(context.WithoutCancel(t.Context())) })
	return spans
}

func TestTraces_OneSpanPerDecisionUnderTheCallersTrace(t *testing.T) {
	t.Parallel()
	b := newBed(t, userRule("login", 1))
	spans := traced(t, b)
	reader := subscribe(t, b, Filter{})
	ctx := b.observer.Traces.FromHTTP(t.Context(), http.Header{"Traceparent": {callersParent}})
	req := byUser("u_1")
	req.Cost = 1
	for range 2 {
		if _, err := b.engine.Check(ctx, req); err != nil {
			t.Fatal(err)
		}
	}
	got := spans.GetSpans()
	if len(got) != 2 {
		t.Fatalf("%d spans, want 2", len(got))
	}
	span := got[1]
	if span.Name != "sluice.check" || span.SpanContext.TraceID().String() != callersTrace || span.Parent.SpanID().String() != "00f067aa0ba902b7" {
		t.Errorf("span %q of trace %s under %s", span.Name, span.SpanContext.TraceID(), span.Parent.SpanID())
	}
	if took := span.EndTime.Sub(span.StartTime); took <= 0 || took > time.Second {
		t.Errorf("the span took %v", took)
	}
	want := map[attribute.Key]string{"sluice.namespace": "default", "sluice.outcome": "refused", "sluice.mode": "exact", "sluice.rule": "login", "sluice.cost": "1"}
	for _, a := range span.Attributes {
		if w, ok := want[a.Key]; ok && a.Value.String() != w {
			t.Errorf("%s is %s, want %s", a.Key, a.Value.String(), w)
		}
		delete(want, a.Key)
	}
	if len(want) > 0 {
		t.Errorf("no attributes %v", want)
	}
	if e := <-reader.Events(); e.TraceID != callersTrace {
		t.Errorf("the tail names trace %q, want %s", e.TraceID, callersTrace)
	}
}

func TestTraces_FollowTheCallersSampling(t *testing.T) {
	t.Parallel()
	b := newBed(t, userRule("login", 1))
	spans := traced(t, b)
	ctx := b.observer.Traces.FromGRPC(t.Context(), map[string][]string{"traceparent": {notSampled}})
	if _, err := b.engine.Check(ctx, byUser("u_1")); err != nil {
		t.Fatal(err)
	}
	if n := len(spans.GetSpans()); n != 0 {
		t.Errorf("%d spans of a trace that is not sampled", n)
	}
}

func TestTraces_AreHandedOn(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	traced(t, b)
	ctx := b.observer.Traces.FromGRPC(t.Context(), map[string][]string{"traceparent": {callersParent}})
	header := http.Header{}
	b.observer.Traces.ToHTTP(ctx, header)
	if got := header.Get("traceparent"); got != callersParent {
		t.Errorf("got %q, want %q", got, callersParent)
	}
}

func TestTraces_AreOffUnlessAskedFor(t *testing.T) {
	for _, name := range []string{"OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_SDK_DISABLED"} {
		t.Setenv(name, "")
	}
	off := func(why string) {
		t.Helper()
		traces, err := NewTraces(t.Context(), "v", slog.New(slog.DiscardHandler))
		if traces != nil || err != nil {
			t.Errorf("%s: got %v, %v", why, traces, err)
		}
		ctx := t.Context()
		if traces.FromHTTP(ctx, http.Header{"Traceparent": {callersParent}}) != ctx || traces.FromGRPC(ctx, nil) != ctx || traces.Shutdown(ctx) != nil {
			t.Errorf("%s: nil traces do something", why)
		}
		traces.ToHTTP(ctx, nil)
	}
	off("no variable is set")
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	off("none is asked for")
	t.Setenv("OTEL_TRACES_EXPORTER", "otlp")
	t.Setenv("OTEL_SDK_DISABLED", "true")
	off("all is disabled")
	t.Setenv("OTEL_SDK_DISABLED", "")
	t.Setenv("OTEL_TRACES_EXPORTER", "nonsense")
	if _, err := NewTraces(t.Context(), "v", slog.New(slog.DiscardHandler)); err == nil {
		t.Error("an unknown exporter is taken")
	}
}

func TestTraces_ReachACollectorByTheStandardVariables(t *testing.T) {
	received := make(chan string, 1)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		received <- r.URL.Path + " " + string(body)
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_SERVICE_NAME", "edge-limiter")
	traces, err := NewTraces(t.Context(), "v1.2.3", slog.New(slog.DiscardHandler))
	if err != nil || traces == nil {
		t.Fatalf("got %v, %v", traces, err)
	}
	b := newBed(t, userRule("login", 1))
	b.observer.Traces = traces
	b.check(t, byUser("u_1"))
	if err := traces.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	export := <-received // protobuf, in which texts stand as they are
	for _, want := range []string{"/v1/traces ", "sluice.check", "sluice.outcome", "edge-limiter", "v1.2.3"} {
		if !strings.Contains(export, want) {
			t.Errorf("the collector got no %q in %q", want, export)
		}
	}
}

func BenchmarkObserver_Traced(b *testing.B) {
	bed := newBed(b, userRule("login", 1<<20))
	traces, err := newTraces(b.Context(), "v", slog.New(slog.DiscardHandler), tracesdk.WithBatcher(tracetest.NewNoopExporter()))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = traces.Shutdown(context.WithoutCancel(b.Context())) }()
	bed.observer.Traces = traces
	for name, parent := range map[string]string{"sampled": callersParent, "not_sampled": notSampled} {
		b.Run(name, func(b *testing.B) {
			ctx := traces.FromHTTP(b.Context(), http.Header{"Traceparent": {parent}})
			req := byUser("u_1")
			d := bed.check(b, req)
			b.ReportAllocs()
			for b.Loop() {
				bed.observer.Decided(ctx, &req, &d, time.Now(), someTime)
			}
		})
	}
}
