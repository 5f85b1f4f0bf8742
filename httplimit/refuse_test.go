package httplimit_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/httplimit"
)

const (
	quotaType = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	quotaText = "Request cannot be satisfied as assigned quota has been exceeded"
)

func with(r sluice.Rule, response sluice.Response) sluice.Rule {
	r.Response = response
	return r
}

func TestRefuse_SaysWhatTheClientMayKnow(t *testing.T) {
	t.Parallel()
	block := sluice.Rule{Name: "secret-block", Action: sluice.Block}
	a, b := labelled("a", "a", sluice.PerSecond(5), sluice.PerMinute(5)), labelled("b", "b", sluice.PerHour(5))
	ours := sluice.Response{Status: 402, Message: "Upgrade <now>."}
	spent, never, closed := refused(time.Second, 0), refused(sluice.Never, 0), sluice.State{Mode: sluice.Closed, RetryAfter: time.Second}

	for _, tc := range []struct {
		name   string
		rules  []sluice.Rule
		states []sluice.State
		want   map[string]any
	}{
		{"one limit", []sluice.Rule{b}, []sluice.State{spent}, map[string]any{
			"type": quotaType, "title": quotaText, "status": 429.0, "detail": `The quota "b" is spent.`, "violated-policies": []any{"b"},
		}},
		{"several, the longest wait first in the text", []sluice.Rule{a, b}, []sluice.State{passed(1, 0), refused(2*time.Second, 0), spent}, map[string]any{
			"type": quotaType, "title": quotaText, "status": 429.0, "detail": `The quota "a-2" is spent.`, "violated-policies": []any{"a-2", "b"},
		}},
		{"a cost above the capacity", []sluice.Rule{b}, []sluice.State{never}, map[string]any{
			"type": quotaType, "title": quotaText, "status": 429.0,
			"detail": `The request costs more than the quota "b" ever admits.`, "violated-policies": []any{"b"},
		}},
		{"the rule's own words", []sluice.Rule{with(b, ours)}, []sluice.State{spent}, map[string]any{
			"type": quotaType, "title": quotaText, "status": 402.0, "detail": "Upgrade <now>.", "violated-policies": []any{"b"},
		}},
		{"a store that does not answer", []sluice.Rule{b}, []sluice.State{closed}, map[string]any{
			"type":  "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
			"title": "Request cannot be satisfied due to temporary server capacity constraints", "status": 503.0, "detail": "Quotas cannot be counted at the moment.",
		}},
		{"a blocking rule", []sluice.Rule{block}, nil, map[string]any{
			"type": "about:blank", "title": "Too Many Requests", "status": 429.0, "detail": "Such requests are refused.",
		}},
		{"a blocking rule's own words", []sluice.Rule{with(block, sluice.Response{Status: 451, Message: "Not here."})}, nil, map[string]any{
			"type": "about:blank", "title": "Unavailable For Legal Reasons", "status": 451.0, "detail": "Not here.",
		}},
		{"a status without a name", []sluice.Rule{with(block, sluice.Response{Status: 420})}, nil, map[string]any{
			"type": "about:blank", "title": "Refused", "status": 420.0, "detail": "Such requests are refused.",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := decisionOf(t, tc.rules, tc.states...)
			wantProblem(t, &d, tc.want)
		})
	}
}

func TestRefuse_KeepsTheReasonOfABlockToItself(t *testing.T) {
	t.Parallel()
	l := limiterOf(t, fakeStore{})
	block := &sluice.BlockedSubject{Reason: "secret", Until: epoch.Add(90 * time.Second)}
	d, err := l.Check(t.Context(), sluice.Request{Subject: sluice.Subject{Blocked: block}})
	if err != nil {
		t.Fatal(err)
	}
	wantProblem(t, &d, map[string]any{
		"type": "about:blank", "title": "Forbidden", "status": 403.0, "detail": "Requests of this client are refused.",
	})
	h := http.Header{}
	httplimit.WriteHeaders(h, &d, 0, epoch)
	if got := names(h); got != "Cache-Control Retry-After" {
		t.Errorf("header fields %s, want Cache-Control and Retry-After only", got)
	}
}

// TestMiddleware_AnswersEveryIdentityAlike holds for S13: a refusal does not tell whether a user exists.
func TestMiddleware_AnswersEveryIdentityAlike(t *testing.T) {
	t.Parallel()
	rule := labelled("a", "a", sluice.PerMinute(5))
	rule.Key = []sluice.Dimension{sluice.User}
	limiter := limiterOf(t, fakeStore{refused(2*time.Second, time.Minute)}, rule)
	answers := map[string]bool{}
	for _, user := range []string{"alice", "nobody"} {
		key := httplimit.ByUser(func(*http.Request) string { return user })
		limit := httplimit.Middleware(limiter, key, httplimit.Options{Now: atEpoch})
		w := httptest.NewRecorder()
		limit(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		var p map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		delete(p, "instance")
		text, _ := json.Marshal([]any{w.Code, w.Header(), p})
		answers[string(text)] = true
	}
	if len(answers) != 1 {
		t.Errorf("two users, refused alike, are answered differently: %v", answers)
	}
}

func wantProblem(t *testing.T, d *sluice.Decision, want map[string]any) {
	t.Helper()
	w := httptest.NewRecorder()
	httplimit.Refuse(w, d)
	var got map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("body %q: %v", w.Body, err)
	}
	want["instance"] = "urn:sluice:decision:" + d.ID.String()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("problem %v, want %v", got, want)
	}
	if float64(w.Code) != want["status"] || httplimit.Status(d) != w.Code {
		t.Errorf("status %d, Status says %d, want %v", w.Code, httplimit.Status(d), want["status"])
	}
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type %q", got)
	}
	if strings.Contains(w.Body.String(), "secret") {
		t.Errorf("body %s tells a secret", w.Body)
	}
}
