package checkgrpc

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/api/sluicev1"
	"github.com/sluicehq/sluice/internal/engine"
)

// FuzzQuestions_AreReadAsTheGeneratedCodeReadsThem holds our reader against the generated one, for any bytes.
func FuzzQuestions_AreReadAsTheGeneratedCodeReadsThem(f *testing.F) {
	for _, m := range []proto.Message{
		&sluicev1.CheckStreamRequest{},
		&sluicev1.CheckStreamRequest{Id: math.MaxUint64, Requests: []*sluicev1.Request{{}, fullRequest()}},
		&sluicev1.CheckStreamRequest{Id: 7, Requests: []*sluicev1.Request{{Subject: &sluicev1.Subject{Ip: "here"}}, {Cost: -1}}},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(append(b, b...))
		f.Add(protowire.AppendString(protowire.AppendTag(b, 99, protowire.BytesType), "unknown"))
	}
	f.Add([]byte{0x12, 0x02, 0x0a, 0x05})
	f.Add([]byte{0xb5, 0xb0, 0xef, 0xa8, 0x30, 0x30, 0x30, 0x30, 0x30}) // a field number beyond the largest
	f.Fuzz(func(t *testing.T, b []byte) {
		want, got := &sluicev1.CheckStreamRequest{}, &questions{field: fieldStreamAsked}
		wantErr, gotErr := proto.Unmarshal(b, want), proto.Unmarshal(b, got)
		if gotErr != nil {
			if wantErr == nil {
				t.Fatalf("%x: generated code reads it, ours says %v", b, gotErr)
			}
			return
		}
		if wantErr != nil {
			// Ours finds fault with a text that is not UTF-8 field by field, so that the caller learns which.
			if len(got.invalid) == 0 && got.count <= engine.MaxBatch {
				t.Fatalf("%x: ours reads it, generated code says %v", b, wantErr)
			}
			return
		}
		compareQuestions(t, got, want)
	})
}

func compareQuestions(t *testing.T, got *questions, want *sluicev1.CheckStreamRequest) {
	t.Helper()
	if got.id != want.GetId() || got.count != len(want.GetRequests()) {
		t.Fatalf("id %d and %d questions, want %d and %d", got.id, got.count, want.GetId(), len(want.GetRequests()))
	}
	if got.bounded() != nil {
		return
	}
	reqs, faulty := got.reqs, got.invalid
	for i, in := range want.GetRequests() {
		req, err := requestOf(in)
		if err != nil {
			if len(faulty) == 0 || faulty[0].at != i || faulty[0].err.Error() != err.Error() {
				t.Fatalf("question %d: faults %v, want %v first", i, faulty, err)
			}
			faulty = faulty[1:]
			continue
		}
		if len(reqs) == 0 || !equalRequests(reqs[0], req) {
			t.Fatalf("question %d: %+v, want %+v first", i, reqs, req)
		}
		reqs = reqs[1:]
	}
}

func equalRequests(a, b sluice.Request) bool {
	return a.Namespace == b.Namespace && a.Route == b.Route && a.Method == b.Method && a.Cost == b.Cost &&
		a.Subject.Tenant == b.Subject.Tenant && a.Subject.User == b.Subject.User && a.Subject.APIKey == b.Subject.APIKey &&
		a.Subject.IP == b.Subject.IP && a.Subject.Tier == b.Subject.Tier && maps.Equal(a.Attributes, b.Attributes)
}

func fullRequest() *sluicev1.Request {
	return &sluicev1.Request{
		Namespace:  "api",
		Subject:    &sluicev1.Subject{Tenant: "t", User: "ü_42", ApiKey: "k", Ip: "::ffff:192.0.2.1", Tier: "gold"},
		Route:      "/v1/search",
		Method:     "GET",
		Attributes: map[string]string{"plan": "free", "region": ""},
		Cost:       12,
	}
}

func TestQuestions_KeepEveryField(t *testing.T) {
	t.Parallel()
	b, err := proto.Marshal(&sluicev1.CheckRequest{Request: fullRequest()})
	if err != nil {
		t.Fatal(err)
	}
	q := &questions{field: fieldQuestions}
	if err := proto.Unmarshal(b, q); err != nil {
		t.Fatal(err)
	}
	got, err := q.only()
	want := sluice.Request{
		Namespace:  "api",
		Subject:    sluice.Subject{Tenant: "t", User: "ü_42", APIKey: "k", IP: netip.MustParseAddr("192.0.2.1"), Tier: "gold"},
		Route:      "/v1/search",
		Method:     "GET",
		Attributes: map[string]string{"plan": "free", "region": ""},
		Cost:       12,
	}
	if err != nil || !equalRequests(*got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

// TestDecision_IsWrittenAsTheGeneratedCodeReadsIt draws decisions and reads back what we wrote of them.
func TestDecision_IsWrittenAsTheGeneratedCodeReadsIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawDecision(t)
		got := &sluicev1.CheckResponse{}
		b, err := proto.Marshal(decisionReply(&d))
		if err != nil {
			t.Fatal(err)
		}
		if err := (proto.UnmarshalOptions{}).Unmarshal(b, got); err != nil {
			t.Fatalf("generated code does not read what we wrote of %+v: %v", d, err)
		}
		if want := decisionMessage(&d); !proto.Equal(got.GetDecision(), want) {
			t.Fatalf("got  %v\nwant %v", got.GetDecision(), want)
		}
		if again, err := (proto.MarshalOptions{Deterministic: true}).Marshal(got); err != nil || !slices.Equal(again, b) {
			t.Fatalf("we wrote %x, generated code %x, %v", b, again, err)
		}
	})
}

func drawDecision(t *rapid.T) sluice.Decision {
	wait := rapid.OneOf(rapid.Just(time.Duration(0)), rapid.Just(sluice.Never), rapid.Map(rapid.Int64Range(0, 1<<62), func(n int64) time.Duration { return time.Duration(n) }))
	d := sluice.Decision{
		Allowed:    rapid.Bool().Draw(t, "allowed"),
		Cause:      rapid.SampledFrom([]sluice.Cause{sluice.ByLimits, sluice.NoRule, sluice.BlockedByList}).Draw(t, "cause"),
		Mode:       sluice.Mode(rapid.IntRange(0, 4).Draw(t, "mode")),
		Cost:       rapid.Int64Min(0).Draw(t, "cost"),
		Delay:      rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.Int64Range(0, 1<<40).Draw(t, "")) }).Draw(t, "delay"),
		RetryAfter: wait.Draw(t, "retry"),
		Revision:   sluice.Revision(rapid.Int64Min(0).Draw(t, "revision")),
	}
	_ = d.ID.UnmarshalText(fmt.Appendf(nil, "%032x", rapid.Uint64().Draw(t, "id")))
	var results []sluice.Result
	for range rapid.IntRange(0, 9).Draw(t, "results") {
		results = append(results, sluice.Result{
			Rule: &sluice.Rule{
				Name: rapid.String().Draw(t, "rule"), Label: rapid.String().Draw(t, "label"),
				Action:   sluice.Action(rapid.IntRange(0, 4).Draw(t, "action")),
				Response: sluice.Response{Status: rapid.IntRange(400, 599).Draw(t, "status"), Message: rapid.String().Draw(t, "message")},
			},
			Limit: sluice.Limit{
				Algorithm: sluice.Algorithm(rapid.IntRange(0, 3).Draw(t, "algorithm")),
				Limit:     rapid.Int64Min(0).Draw(t, "limit"), Window: time.Duration(rapid.Int64Min(0).Draw(t, "window")),
				Burst: rapid.Int64Min(0).Draw(t, "burst"),
			},
			Allowed: rapid.Bool().Draw(t, "passed"), Mode: sluice.Mode(rapid.IntRange(0, 4).Draw(t, "mode")),
			Remaining: rapid.Int64Min(0).Draw(t, "remaining"), ResetAfter: wait.Draw(t, "reset"), RetryAfter: wait.Draw(t, "retry"),
		})
	}
	d, err := sluice.RemoteDecision(d, rapid.String().Draw(t, "reason"), results)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// decisionMessage makes the generated message field by field.
func decisionMessage(d *sluice.Decision) *sluicev1.Decision {
	m := &sluicev1.Decision{
		Id: d.ID.String(), Allowed: d.Allowed, Cause: sluicev1.Cause(d.Cause + 1), Mode: sluicev1.Mode(d.Mode + 1),
		Cost: d.Cost, Revision: int64(d.Revision), BlockReason: d.BlockReason(),
	}
	if d.Delay > 0 {
		m.Delay = durationpb.New(d.Delay)
	}
	if !d.Allowed && d.RetryAfter != sluice.Never {
		m.RetryAfter = durationpb.New(d.RetryAfter)
	}
	for _, r := range d.Results() {
		x := &sluicev1.Result{
			Rule: r.Rule.Name, Label: r.Rule.Label, Action: sluicev1.Action(r.Rule.Action + 1), Allowed: r.Allowed,
			Mode: sluicev1.Mode(r.Mode + 1), Remaining: r.Remaining,
		}
		if r.Limit.Limit > 0 {
			x.Algorithm, x.Limit, x.Burst = sluicev1.Algorithm(r.Limit.Algorithm+1), r.Limit.Limit, r.Limit.Burst
			x.Window = durationpb.New(r.Limit.Window)
		}
		if r.ResetAfter > 0 {
			x.ResetAfter = durationpb.New(r.ResetAfter)
		}
		if !r.Allowed {
			x.Status, x.Message = int32(r.Rule.Response.Status), r.Rule.Response.Message
			if r.RetryAfter != sluice.Never {
				x.RetryAfter = durationpb.New(r.RetryAfter)
			}
		}
		m.Results = append(m.Results, x)
	}
	return m
}

func TestStatus_TellsNothingOfUnknownErrors(t *testing.T) {
	t.Parallel()
	if got := statusOf(errors.New("dial tcp 10.0.0.7: secret")).Error(); got != "rpc error: code = Internal desc = the request could not be decided" {
		t.Errorf("callers read %q", got)
	}
}

// BenchmarkWire is what this door adds to a decision: reading a question and writing the answer.
func BenchmarkWire(b *testing.B) {
	in, err := proto.Marshal(&sluicev1.CheckRequest{Request: &sluicev1.Request{
		Subject: &sluicev1.Subject{User: "u_42", Ip: "192.0.2.1"}, Route: "/v1/search", Method: "GET",
	}})
	if err != nil {
		b.Fatal(err)
	}
	rule := &sluice.Rule{Name: "search-per-user", Label: "search"}
	d, err := sluice.RemoteDecision(sluice.Decision{Allowed: true, Cost: 1, Revision: 42}, "", []sluice.Result{
		{Rule: rule, Limit: sluice.PerMinute(100), Allowed: true, Remaining: 99, ResetAfter: time.Minute},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		q := &questions{field: fieldQuestions}
		for b.Loop() {
			_ = proto.Unmarshal(in, q)
			_, _ = proto.Marshal(decisionReply(&d))
		}
	})
	b.Run("generated", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			m := &sluicev1.CheckRequest{}
			_ = proto.Unmarshal(in, m)
			_, _ = requestOf(m.GetRequest())
			_, _ = proto.Marshal(&sluicev1.CheckResponse{Decision: decisionMessage(&d)})
		}
	})
}
