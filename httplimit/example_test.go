package httplimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/httplimit"
	"github.com/sluicehq/sluice/memstore"
)

// noon stands still, so that the examples print the same at any time. Programs leave both Now unset.
func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }

// One request a second for every client address.
func ExampleMiddleware() {
	limiter := sluice.New(memstore.New(memstore.Options{Now: noon}), sluice.PerKey(sluice.PerSecond(1)), sluice.Options{})
	limit := httplimit.Middleware(limiter, httplimit.ByIP, httplimit.Options{Now: noon})
	handler := limit(http.HandlerFunc(hello))

	for range 2 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		fmt.Println(w.Code)
		for _, name := range []string{"RateLimit-Policy", "RateLimit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After"} {
			if value := w.Header().Get(name); value != "" {
				fmt.Printf("  %s: %s\n", name, value)
			}
		}
	}
	// Output:
	// 200
	//   RateLimit-Policy: "default";q=1;w=1
	//   RateLimit: "default";r=0;t=1
	//   X-RateLimit-Remaining: 0
	//   X-RateLimit-Reset: 1767268801
	// 429
	//   RateLimit-Policy: "default";q=1;w=1
	//   RateLimit: "default";r=0;t=2
	//   X-RateLimit-Remaining: 0
	//   X-RateLimit-Reset: 1767268802
	//   Retry-After: 2
}

// Rules that concern tenants need a key function of the program's own. What RequestOf fills in lets rules match routes,
// methods and addresses, too.
func ExampleKeyFunc() {
	rules, _ := sluice.Compile([]sluice.Rule{{
		Name:   "uploads",
		Match:  sluice.Match{Routes: []string{"/{tenant}/uploads"}, Methods: []string{http.MethodPost}},
		Key:    []sluice.Dimension{sluice.Tenant},
		Limits: []sluice.Limit{sluice.PerMinute(1)},
	}})
	limiter := sluice.New(memstore.New(memstore.Options{Now: noon}), rules, sluice.Options{})
	byTenant := func(r *http.Request) (sluice.Request, error) {
		req := httplimit.RequestOf(r)
		req.Subject.Tenant = r.PathValue("tenant")
		return req, nil
	}
	limit := httplimit.Middleware(limiter, byTenant, httplimit.Options{})
	mux := http.NewServeMux()
	mux.Handle("/{tenant}/uploads", limit(http.HandlerFunc(hello)))

	for _, line := range [][2]string{{"POST", "/acme/uploads"}, {"POST", "/acme/uploads"}, {"GET", "/acme/uploads"}, {"POST", "/other/uploads"}} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(line[0], line[1], nil))
		fmt.Println(line[0], line[1], w.Code)
	}
	// Output:
	// POST /acme/uploads 200
	// POST /acme/uploads 429
	// GET /acme/uploads 200
	// POST /other/uploads 200
}

// A program may answer refusals in its own way; the header fields are set already.
func ExampleOptions_onRefuse() {
	limiter := sluice.New(memstore.New(memstore.Options{Now: noon}), sluice.PerKey(sluice.PerSecond(1)), sluice.Options{})
	limit := httplimit.Middleware(limiter, httplimit.ByIP, httplimit.Options{
		OnRefuse: func(w http.ResponseWriter, _ *http.Request, d *sluice.Decision) {
			http.Error(w, "come back later", httplimit.Status(d))
		},
	})
	handler := limit(http.HandlerFunc(hello))
	for range 2 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		fmt.Print(w.Code, " ", w.Body)
	}
	// Output:
	// 200 hello
	// 429 come back later
}
