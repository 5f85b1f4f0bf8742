package checkhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/checkhttp"
	"github.com/sluicehq/sluice/internal/engine"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/memstore"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

var rules = []sluice.Rule{
	{Name: "search-per-user", Label: "search", Match: sluice.Match{Routes: []string{"/search"}}, Key: []sluice.Dimension{sluice.User}, Limits: []sluice.Limit{{Algorithm: sluice.FixedWindow, Limit: 2, Window: 24 * time.Hour}}},
	{Name: "login", Match: sluice.Match{Routes: []string{"/login"}}, Key: []sluice.Dimension{sluice.IP}, Limits: []sluice.Limit{sluice.Bucket(1, time.Hour, 3)}, Response: sluice.Response{Status: 420}},
	{Name: "no-robots", Layer: "robots", Match: sluice.Match{Attributes: map[string]string{"agent": "robot"}}, Action: sluice.Block},
	{Name: "page", Match: sluice.Match{Routes: []string{"/page"}}, Layer: "page", Action: sluice.Throttle, MaxDelay: time.Minute, Limits: []sluice.Limit{sluice.Bucket(1, time.Second, 1)}},
}

func engineOf(tb testing.TB, store sluice.Store, opts engine.Options) *engine.Engine {
	tb.Helper()
	set, faults := sluice.Compile(rules)
	for _, f := range faults {
		if !f.Warning {
			tb.Fatal(f)
		}
	}
	return engine.New(sluice.New(store, set.WithRevision(42), sluice.Options{Timeout: 5 * time.Second}), opts)
}

func inMemory(tb testing.TB) http.Handler {
	tb.Helper()
	return checkhttp.New(engineOf(tb, memstore.New(memstore.Options{}), engine.Options{}), checkhttp.Options{})
}

type answer struct {
	Allowed      bool
	Cause        string
	Mode         string
	Status       int
	RetryAfterMS *int64 `json:"retry_after_ms"`
	DelayMS      int64  `json:"delay_ms"`
	Revision     int
	Results      []struct {
		Rule, Label string
		Remaining   int64
	}
}

func TestCheck_TellsTheVerdictByStatusBodyAndHeadersOverRedis(t *testing.T) {
	t.Parallel()
	store, err := rueidisconn.OpenStore("redis://" + testredis.Single(t, testredis.Options{}).Addr())
	if err != nil {
		t.Fatal(err)
	}
	h, c := checkhttp.New(engineOf(t, store, engine.Options{}), checkhttp.Options{}), newContractChecker(t)
	timing := regexp.MustCompile(`^sluice;dur=\d+\.\d{3}$`)
	for i, want := range []int{200, 200, 429, 429} {
		w := c.do(t, h, "/v1/check", `{"subject": {"user": "u_42", "ip": "192.0.2.1"}, "route": "/search", "method": "GET"}`)
		var d answer
		decodeBody(t, w, &d)
		left := max(1-i, 0)
		if w.Code != want || d.Allowed != (want == 200) || d.Mode != "exact" || d.Revision != 42 || len(d.Results) != 1 || d.Results[0].Remaining != int64(left) {
			t.Errorf("request %d: status %d, %+v, want %d with %d left", i+1, w.Code, d, want, left)
		}
		if got, want := w.Header().Get("X-RateLimit-Remaining"), fmt.Sprint(left); got != want {
			t.Errorf("request %d: X-RateLimit-Remaining %q, want %q", i+1, got, want)
		}
		if refused := want == 429; refused != (w.Header().Get("Retry-After") != "") || refused != (d.RetryAfterMS != nil) || refused != (d.Status == 429) {
			t.Errorf("request %d: Retry-After %q, body %+v", i+1, w.Header().Get("Retry-After"), d)
		}
		if got := w.Header().Get("Server-Timing"); !timing.MatchString(got) {
			t.Errorf("request %d: Server-Timing %q", i+1, got)
		}
		for name, values := range w.Header() {
			if strings.Contains(strings.Join(values, ","), "search-per-user") {
				t.Errorf("header %s tells the rule's name: %q", name, values)
			}
		}
	}
}

func TestCheck_AnswersAsTheContractSays(t *testing.T) {
	t.Parallel()
	h, c := inMemory(t), newContractChecker(t)
	for _, q := range []struct {
		path, body string
		want       int
		cause      string
	}{
		{"/v1/check", `{}`, 200, "no_rule"},
		{"/v1/check", `{"subject":{"ip":"192.0.2.1"},"route":"/login","cost":3}`, 200, "limits"},
		{"/v1/check", `{"subject":{"ip":"192.0.2.1"},"route":"/login"}`, 420, "limits"},
		{"/v1/check", `{"subject":{"ip":"2001:db8::1%eth0"},"route":"/login","cost":4}`, 420, "limits"}, // never passes
		{"/v1/check", `{"attributes":{"agent":"robot"}}`, 429, "blocked_by_rule"},
		{"/v1/check", `{"route":"/page"}`, 200, "limits"},
		{"/v1/check", `{"route":"/page"}`, 200, "limits"}, // after a delay
		{"/v1/peek", `{"subject":{"user":"p"},"route":"/search"}`, 200, "limits"},
	} {
		w := c.do(t, h, q.path, q.body)
		var d answer
		decodeBody(t, w, &d)
		if w.Code != q.want || d.Cause != q.cause || d.Allowed != (q.want == 200) {
			t.Errorf("%s %s: status %d, %+v, want %d, %s", q.path, q.body, w.Code, d, q.want, q.cause)
		}
	}
}

func TestQuestions_WithFaultsAreRefusedWithEveryFault(t *testing.T) {
	t.Parallel()
	h, c := inMemory(t), newContractChecker(t)
	for _, q := range []struct{ path, body, want string }{
		{"/v1/check", `{"usr": "a", "subject": {"uzer": "b", "tenant": 7}}`, "[#/subject/tenant #/subject/uzer #/usr]"},
		{"/v1/check", `{"cost": 1.5}`, "[#/cost]"},
		{"/v1/check", `{"cost": -1, "subject": {"ip": "192.0.2.1:80"}}`, "[#/cost #/subject/ip]"},
		{"/v1/check", `{"attributes": {"a/b": 1}}`, "[#/attributes/a~1b]"},
		{"/v1/check", `[]`, "[#]"},
		{"/v1/check", ` null `, "[#]"},
		{"/v1/check", `{"subject": "u"}`, "[#/subject]"},
		{"/v1/check", `{"method": "` + strings.Repeat("G", 33) + `"}`, "[#/method]"},
		{"/v1/check/batch", `{"requests": [{}, {"subject": {"x": 1}}]}`, "[#/requests/1/subject/x]"},
		{"/v1/check/batch", `{"requests": [` + strings.Repeat(`{},`, 1000) + `{}]}`, "[#/requests]"},
		{"/v1/explain", `{"explain": true}`, "[#/explain]"},
		{"/v1/peek", `{"cost": 99999999999999999999}`, "[#/cost]"},
	} {
		w := c.do(t, h, q.path, q.body)
		var p struct {
			Status int
			Errors []struct{ Pointer, Detail string }
		}
		decodeBody(t, w, &p)
		var got []string
		for _, e := range p.Errors {
			got = append(got, e.Pointer)
		}
		if w.Code != http.StatusBadRequest || p.Status != w.Code || fmt.Sprint(got) != q.want {
			t.Errorf("%s %.80s: status %d, faults %+v, want 400 at %s", q.path, q.body, w.Code, p.Errors, q.want)
		}
	}
}

func TestQuestions_ThatAreNoJSONAreRefused(t *testing.T) {
	t.Parallel()
	h := inMemory(t)
	for _, q := range []struct {
		kind, body, want string
		status           int
	}{
		{"application/json", "", "is empty", 400},
		{"application/json", `{"route": "/a"`, "ends too early", 400},
		{"application/json", `{"route": /a}`, "is not JSON at byte 11", 400},
		{"application/json", `{} {}`, "goes on after", 400},
		{"application/json", "{\"route\": \"\xff\"}", "is not UTF-8", 400},
		{"application/json; charset=utf-8", `{}`, "", 200},
		{"", `{}`, "", 200},
		{"application/x-www-form-urlencoded", `{}`, "application/json", 415},
		{"text/plain", `{}`, "application/json", 415},
		{"application/json", `{"route": "` + strings.Repeat("a", 64<<10) + `"}`, "64 KB", 413},
		{"application/json", strings.Repeat("[", 60_000), "", 400},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/check", strings.NewReader(q.body))
		r.Header.Set("Content-Type", q.kind)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != q.status || !strings.Contains(w.Body.String(), q.want) {
			t.Errorf("%s %.40q: %d %s, want %d with %q", q.kind, q.body, w.Code, w.Body, q.status, q.want)
		}
	}
}

func TestHandler_PointsToTheRightPathAndMethod(t *testing.T) {
	t.Parallel()
	h := inMemory(t)
	for _, q := range []struct {
		method, path string
		want         int
	}{{"GET", "/v1/check", 405}, {"PUT", "/v1/explain", 405}, {"POST", "/v1/checks", 404}, {"GET", "/", 404}} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), q.method, q.path, nil))
		if w.Code != q.want || w.Header().Get("Content-Type") != "application/problem+json" || (q.want == 405) != (w.Header().Get("Allow") == "POST") {
			t.Errorf("%s %s: %d %v, want %d", q.method, q.path, w.Code, w.Header(), q.want)
		}
	}
}

func TestBatch_AnswersInvalidRequestsByThemselves(t *testing.T) {
	t.Parallel()
	w := newContractChecker(t).do(t, inMemory(t), "/v1/check/batch", `{"requests": [
		{"subject": {"ip": ""}},
		{"subject": {"user": "u"}, "route": "/search"}, {"subject": {"user": "u"}, "route": "/search"},
		{"subject": {"user": "u"}, "route": "/search"}]}`)
	var got struct {
		Answers []struct {
			Decision *answer
			Faults   []struct{ Pointer string }
		}
	}
	decodeBody(t, w, &got)
	if len(got.Answers) != 4 || !got.Answers[0].Decision.Allowed || !got.Answers[2].Decision.Allowed || got.Answers[3].Decision.Allowed {
		t.Errorf("%+v", got)
	}
	// Here the contract cannot know what is wrong: an address is a string like any other.
	w = httptest.NewRecorder()
	inMemory(t).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/check/batch", strings.NewReader(`{"requests": [{"subject": {"ip": "x"}}, {}]}`)))
	if want := `{"answers":[{"faults":[{"pointer":"#/subject/ip"`; w.Code != 200 || !strings.HasPrefix(w.Body.String(), want) || !strings.Contains(w.Body.String(), `{"decision":{`) {
		t.Errorf("%d %s, want %s…", w.Code, w.Body, want)
	}
}

func TestExplain_TellsRulesAndCountersAndChargesNothing(t *testing.T) {
	t.Parallel()
	h, c := inMemory(t), newContractChecker(t)
	for range 3 {
		w := c.do(t, h, "/v1/explain", `{"subject": {"user": "u"}, "route": "/search"}`)
		var e struct {
			Decision answer
			Reason   string
			Rules    []struct {
				Rule, Why        string
				Matches, Applies bool
			}
		}
		decodeBody(t, w, &e)
		if !strings.Contains(e.Reason, "has 2 of 2 per 24h0m0s") || e.Decision.Results[0].Remaining != 2 || len(e.Rules) != len(rules) {
			t.Fatalf("%+v", e)
		}
		for _, r := range e.Rules {
			if r.Applies != (r.Rule == "search-per-user") || r.Why == "" {
				t.Errorf("rule %+v", r)
			}
		}
	}
}

// failing answers every question with an error.
type failing struct {
	checkhttp.Engine
	err error
}

func (f failing) Check(context.Context, sluice.Request) (sluice.Decision, error) {
	return sluice.Decision{}, f.err
}

func TestCheck_TellsErrorsAsProblems(t *testing.T) {
	t.Parallel()
	for _, q := range []struct {
		err   error
		want  int
		retry string
	}{
		{engine.ErrOverloaded, 503, "1"},
		{errors.New("dial tcp 10.0.0.7: secret"), 500, ""},
		{context.DeadlineExceeded, 503, ""},
		{context.Canceled, 499, ""},
	} {
		w := httptest.NewRecorder()
		checkhttp.New(failing{err: q.err}, checkhttp.Options{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/check", strings.NewReader("{}")))
		if w.Code != q.want || w.Header().Get("Retry-After") != q.retry || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%v: %d %s %v, want %d", q.err, w.Code, w.Body, w.Header(), q.want)
		}
	}
}

func TestCheck_ReadsBodiesThatBreakOffAsFaults(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/check", io.MultiReader(strings.NewReader(`{"ro`), brokenReader{}))
	inMemory(t).ServeHTTP(w, r)
	if w.Code != 400 {
		t.Errorf("%d %s, want 400", w.Code, w.Body)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
