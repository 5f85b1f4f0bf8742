package checkhttp_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/httplimit"
	"github.com/sluicehq/sluice/internal/checkhttp"
	"github.com/sluicehq/sluice/internal/engine"
)

// FuzzDecodeRequest reads any body: no panic, every error is the caller's and has a pointer, and what is accepted is within
// bounds and means the same written again.
func FuzzDecodeRequest(f *testing.F) {
	for _, body := range []string{
		`{}`, `null`, `{"subject":{"tenant":"t","user":"u","api_key":"k","ip":"::1","tier":"x"},"route":"/","method":"GET","attributes":{"a":"b"},"cost":3,"namespace":"n"}`,
		`{"cost":1e3}`, `{"attributes":{"":""}}`, `{"x":[{}]}`, `[[[`, `{"subject":null}`, `{"SUBJECT":{"USER":"u"}}`, "\"\xff\"",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		req, err := checkhttp.DecodeRequest(body)
		if err != nil {
			if !errors.Is(err, sluice.ErrInvalidRequest) || len(engine.FaultsOf(err)) == 0 {
				t.Fatalf("%q: %v, want faults", body, err)
			}
			for _, fault := range engine.FaultsOf(err) {
				if fault.Problem == "" || fault.Pointer()[0] != '#' {
					t.Fatalf("%q: fault %+v", body, fault)
				}
			}
			return
		}
		if _, err := engine.Validate(&req, ""); err != nil || len(req.Attributes) > engine.MaxAttributes || !utf8.ValidString(req.Subject.User) {
			t.Fatalf("%q: accepted %+v: %v", body, req, err)
		}
	})
}

// decisionForm is what AppendDecision writes, for encoding/json.
type decisionForm struct {
	ID          string            `json:"id"`
	Allowed     bool              `json:"allowed"`
	Cause       string            `json:"cause"`
	Mode        sluice.Mode       `json:"mode"`
	Cost        int64             `json:"cost"`
	DelayMS     int64             `json:"delay_ms,omitempty"`
	Status      int               `json:"status,omitempty"`
	RetryAfter  json.RawMessage   `json:"retry_after_ms,omitempty"`
	Revision    int64             `json:"revision"`
	BlockReason string            `json:"block_reason,omitempty"`
	Results     []json.RawMessage `json:"results"`
}

type resultForm struct {
	Rule       string          `json:"rule"`
	Label      string          `json:"label"`
	Action     sluice.Action   `json:"action"`
	Algorithm  string          `json:"algorithm,omitempty"`
	Limit      int64           `json:"limit,omitempty"`
	WindowMS   *int64          `json:"window_ms,omitempty"`
	Burst      int64           `json:"burst,omitempty"`
	Allowed    bool            `json:"allowed"`
	Mode       sluice.Mode     `json:"mode"`
	Remaining  int64           `json:"remaining"`
	ResetAfter int64           `json:"reset_after_ms"`
	RetryAfter json.RawMessage `json:"retry_after_ms,omitempty"`
}

func FuzzAppendDecision(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(appendsLikeEncodingJSON))
}

func TestAppendDecision_WritesWhatEncodingJSONWrites(t *testing.T) {
	t.Parallel()
	rapid.Check(t, appendsLikeEncodingJSON)
}

func appendsLikeEncodingJSON(t *rapid.T) {
	d := drawDecision(t)
	want, err := json.Marshal(formOf(t, &d))
	if err != nil {
		t.Fatal(err)
	}
	if got := checkhttp.AppendDecision(nil, &d); !bytes.Equal(got, want) {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
}

func formOf(t *rapid.T, d *sluice.Decision) decisionForm {
	form := decisionForm{
		ID: d.ID.String(), Allowed: d.Allowed, Cause: checkhttp.CauseName(d.Cause), Mode: d.Mode, Cost: d.Cost,
		DelayMS: ceil(d.Delay), Revision: int64(d.Revision), BlockReason: d.BlockReason(), Results: []json.RawMessage{},
	}
	if !d.Allowed {
		form.Status, form.RetryAfter = httplimit.Status(d), retry(d.RetryAfter)
	}
	for _, r := range d.Results() {
		x := resultForm{
			Rule: r.Rule.Name, Label: r.Rule.Label, Action: r.Rule.Action, Allowed: r.Allowed, Mode: r.Mode,
			Remaining: r.Remaining, ResetAfter: ceil(r.ResetAfter),
		}
		if r.Limit.Limit > 0 {
			window := ceil(r.Limit.Window)
			x.Algorithm, x.Limit, x.WindowMS, x.Burst = r.Limit.Algorithm.String(), r.Limit.Limit, &window, r.Limit.Burst
		}
		if !r.Allowed {
			x.RetryAfter = retry(r.RetryAfter)
		}
		b, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		form.Results = append(form.Results, b)
	}
	return form
}

func retry(d time.Duration) json.RawMessage {
	if d == sluice.Never {
		return json.RawMessage("null")
	}
	return fmt.Appendf(nil, "%d", ceil(d))
}

// ceil is the slow way to whole milliseconds.
func ceil(d time.Duration) int64 {
	n := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		n++
	}
	return n
}

func drawDecision(t *rapid.T) sluice.Decision {
	wait := rapid.OneOf(rapid.Just(time.Duration(0)), rapid.Just(sluice.Never), rapid.Map(rapid.Int64Range(0, 1<<62), func(n int64) time.Duration { return time.Duration(n) }))
	number := rapid.Int64Min(0)
	d := sluice.Decision{
		Allowed:    rapid.Bool().Draw(t, "allowed"),
		Cause:      rapid.SampledFrom([]sluice.Cause{sluice.ByLimits, sluice.NoRule, sluice.Disabled, sluice.Exempted, sluice.BlockedByList}).Draw(t, "cause"),
		Mode:       sluice.Mode(rapid.IntRange(0, 4).Draw(t, "mode")),
		Cost:       number.Draw(t, "cost"),
		Delay:      time.Duration(rapid.Int64Range(0, 1<<40).Draw(t, "delay")),
		RetryAfter: wait.Draw(t, "retry"),
		Revision:   sluice.Revision(number.Draw(t, "revision")),
	}
	_ = d.ID.UnmarshalText(fmt.Appendf(nil, "%032x", rapid.Uint64().Draw(t, "id")))
	var results []sluice.Result
	for range rapid.IntRange(0, 6).Draw(t, "results") {
		results = append(results, sluice.Result{
			Rule: &sluice.Rule{
				Name: rapid.String().Draw(t, "rule"), Label: rapid.String().Draw(t, "label"),
				Action:   sluice.Action(rapid.IntRange(0, 4).Draw(t, "action")),
				Response: sluice.Response{Status: rapid.IntRange(400, 599).Draw(t, "status")},
			},
			Limit: sluice.Limit{
				Algorithm: sluice.Algorithm(rapid.IntRange(0, 3).Draw(t, "algorithm")), Limit: number.Draw(t, "limit"),
				Window: time.Duration(number.Draw(t, "window")), Burst: number.Draw(t, "burst"),
			},
			Allowed: rapid.Bool().Draw(t, "passed"), Mode: sluice.Mode(rapid.IntRange(0, 4).Draw(t, "mode")),
			Remaining: number.Draw(t, "remaining"), ResetAfter: wait.Draw(t, "reset"), RetryAfter: wait.Draw(t, "retry"),
		})
	}
	d, err := sluice.RemoteDecision(d, rapid.String().Draw(t, "reason"), results)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
