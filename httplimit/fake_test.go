package httplimit_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/httplimit"
)

// epoch is when all of these tests happen, a little after a whole second.
var epoch = time.Unix(1_800_000_000, 300_000_000)

func atEpoch() time.Time { return epoch }

// fakeStore answers the charges of a request with its states, in turn.
type fakeStore []sluice.State

func (s fakeStore) Take(_ context.Context, groups [][]sluice.Charge) {
	for i := range groups[0] {
		groups[0][i].State = s[i]
	}
}
func (s fakeStore) Peek(ctx context.Context, groups [][]sluice.Charge) { s.Take(ctx, groups) }
func (fakeStore) Give(context.Context, []sluice.Charge)                {}
func (fakeStore) Reset(context.Context, []sluice.Charge)               {}

// decisionOf lets a limiter with these rules decide by these states, one for each limit. The rules are in layers of
// their own, which a limiter asks in the order of their names.
func decisionOf(t testing.TB, rules []sluice.Rule, states ...sluice.State) sluice.Decision {
	t.Helper()
	d, err := limiterOf(t, fakeStore(states), rules...).Check(t.Context(), sluice.Request{Method: http.MethodGet, Route: "/"})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func limiterOf(t testing.TB, store sluice.Store, rules ...sluice.Rule) *sluice.Limiter {
	t.Helper()
	set, faults := sluice.Compile(rules)
	for _, f := range faults {
		if !f.Warning {
			t.Fatal(f)
		}
	}
	return sluice.New(store, set, sluice.Options{Now: atEpoch})
}

// serve sends one request through a middleware to a handler that answers 204, and tells whether it was reached.
func serve(checker sluice.Checker, opts httplimit.Options, r *http.Request) (*httptest.ResponseRecorder, bool) {
	reached := false
	opts.Now = atEpoch
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached = true
		w.WriteHeader(http.StatusNoContent)
	})
	w := httptest.NewRecorder()
	httplimit.Middleware(checker, httplimit.ByIP, opts)(next).ServeHTTP(w, r)
	return w, reached
}

// checkerFunc is a checker made of a function.
type checkerFunc func(context.Context, sluice.Request) (sluice.Decision, error)

func (f checkerFunc) Check(ctx context.Context, req sluice.Request) (sluice.Decision, error) {
	return f(ctx, req)
}

// wantFields compares header fields; an empty value wants none.
func wantFields(t *testing.T, got http.Header, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if g := got.Get(name); g != value {
			t.Errorf("%s: %q, want %q", name, g, value)
		}
	}
}
