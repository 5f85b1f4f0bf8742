package httplimit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/httplimit"
	"github.com/sluicehq/sluice/memstore"
)

func TestMiddleware_LimitsOverTheWire(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Options{Now: atEpoch})
	limiter := sluice.New(store, sluice.PerKey(sluice.PerMinute(2)), sluice.Options{})
	limit := httplimit.Middleware(limiter, httplimit.ByIP, httplimit.Options{})
	server := httptest.NewServer(limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "broken", http.StatusInternalServerError)
	})))
	defer server.Close()

	for i, want := range []int{500, 500, 429, 429} {
		resp, err := server.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("request %d: status %d, want %d", i+1, resp.StatusCode, want)
		}
		wantFields(t, resp.Header, map[string]string{
			"RateLimit-Policy":      `"default";q=2;w=60`,
			"X-RateLimit-Remaining": fmt.Sprint(max(1-i, 0)),
		})
		if (resp.Header.Get("Retry-After") != "") != (want == 429) {
			t.Errorf("request %d: status %d with Retry-After %q", i+1, want, resp.Header.Get("Retry-After"))
		}
	}
}

func TestMiddleware_HandsOnTheResponseWriterItself(t *testing.T) {
	t.Parallel()
	limiter := sluice.New(memstore.New(memstore.Options{}), sluice.PerKey(sluice.PerMinute(2)), sluice.Options{})
	w := httptest.NewRecorder()
	var got http.ResponseWriter
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { got = w })
	httplimit.Middleware(limiter, httplimit.ByIP, httplimit.Options{})(next).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if got != w {
		t.Errorf("the handler got a %T, want the server's own %T", got, w)
	}
}

func TestMiddleware_HoldsThrottledRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := checkerFunc(func(context.Context, sluice.Request) (sluice.Decision, error) {
			return sluice.Decision{Allowed: true, Delay: 30 * time.Second}, nil
		})
		get := func(ctx context.Context) (status int, reached bool, took time.Duration) {
			start := time.Now()
			w, reached := serve(slow, httplimit.Options{}, httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx))
			return w.Code, reached, time.Since(start)
		}
		if status, reached, took := get(t.Context()); !reached || status != 204 || took != 30*time.Second {
			t.Errorf("status %d, reached %t after %s, want 204 after 30s", status, reached, took)
		}

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Second, cancel)
		if status, reached, took := get(ctx); reached || status != 499 || took != 10*time.Second {
			t.Errorf("client gone after 10s: status %d, reached %t after %s", status, reached, took)
		}

		ctx, cancel = context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if status, reached, took := get(ctx); reached || status != 503 || took != 0 {
			t.Errorf("deadline in 20s: status %d, reached %t after %s, want 503 at once", status, reached, took)
		}
	})
}

func TestMiddleware_AnswersErrorsWithoutRepeatingThem(t *testing.T) {
	t.Parallel()
	cause := errors.New("password is hunter2")
	for _, tc := range []struct {
		name string
		err  error
		want int
		body string
	}{
		{"invalid", fmt.Errorf("%w: %w", sluice.ErrInvalidRequest, cause), 400, `{"type":"about:blank","title":"Bad Request","status":400}`},
		{"gone", context.Canceled, 499, ""},
		{"too late", context.DeadlineExceeded, 503, `{"type":"about:blank","title":"Service Unavailable","status":503}`},
		{"any other", cause, 500, `{"type":"about:blank","title":"Internal Server Error","status":500}`},
	} {
		failing := checkerFunc(func(context.Context, sluice.Request) (sluice.Decision, error) { return sluice.Decision{}, tc.err })
		w, reached := serve(failing, httplimit.Options{}, httptest.NewRequest(http.MethodGet, "/", nil))
		if reached || w.Code != tc.want || w.Body.String() != tc.body {
			t.Errorf("%s: status %d, body %s, handler reached: %t; want %d, %s", tc.name, w.Code, w.Body, reached, tc.want, tc.body)
		}
	}
}

func TestMiddleware_AnswersRequestsWithoutAKey(t *testing.T) {
	t.Parallel()
	limiter := sluice.New(memstore.New(memstore.Options{}), sluice.PerKey(sluice.PerMinute(2)), sluice.Options{})
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "@"
	if w, reached := serve(limiter, httplimit.Options{}, r); reached || w.Code != 400 {
		t.Errorf("status %d, handler reached: %t, want 400", w.Code, reached)
	}
	var got error
	own := httplimit.Options{OnError: func(w http.ResponseWriter, _ *http.Request, err error) {
		got = err
		w.WriteHeader(http.StatusTeapot)
	}}
	if w, reached := serve(limiter, own, r); reached || w.Code != 418 || !errors.Is(got, httplimit.ErrKey) {
		t.Errorf("status %d, handler reached: %t, error %v, want 418 for ErrKey", w.Code, reached, got)
	}
}

func TestMiddleware_LetsTheProgramAnswerRefusals(t *testing.T) {
	t.Parallel()
	limiter := limiterOf(t, fakeStore{refused(2*time.Second, time.Minute)}, labelled("a", "a", sluice.PerMinute(5)))
	var got *sluice.Decision
	own := httplimit.Options{OnRefuse: func(w http.ResponseWriter, _ *http.Request, d *sluice.Decision) {
		got = d
		http.Error(w, "slow down", httplimit.Status(d))
	}}
	w, reached := serve(limiter, own, httptest.NewRequest(http.MethodGet, "/", nil))
	if reached || w.Code != 429 || w.Body.String() != "slow down\n" || got == nil || got.Allowed {
		t.Errorf("status %d, body %q, decision %v, handler reached: %t", w.Code, w.Body, got, reached)
	}
	wantFields(t, w.Header(), map[string]string{"RateLimit": `"a";r=0;t=2`, "Retry-After": "2", "Cache-Control": "no-store"})
}
