package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/httplimit"
	"github.com/sluicehq/sluice/memstore"
)

func BenchmarkWriteHeaders(b *testing.B) {
	d := decisionOf(b, []sluice.Rule{labelled("a", "user", sluice.PerSecond(100), sluice.PerHour(10_000)), labelled("b", "search", sluice.PerMinute(60))},
		passed(99, time.Second), passed(9_000, 1000*time.Second), passed(12, 30*time.Second))
	h := http.Header{}
	b.ReportAllocs()
	for b.Loop() {
		httplimit.WriteHeaders(h, &d, 0, epoch)
	}
}

func BenchmarkMiddleware(b *testing.B) {
	for _, bc := range []struct {
		name  string
		limit int64
	}{{"allowed", sluice.MaxWindowedLimit}, {"refused", 1}} {
		b.Run(bc.name, func(b *testing.B) {
			limiter := sluice.New(memstore.New(memstore.Options{Now: atEpoch}), sluice.PerKey(sluice.PerDay(bc.limit)), sluice.Options{})
			limit := httplimit.Middleware(limiter, httplimit.ByIP, httplimit.Options{})
			h := limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			r, w := httptest.NewRequest(http.MethodGet, "/", nil), discard{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				h.ServeHTTP(w, r)
			}
		})
	}
}

// discard is a ResponseWriter that keeps nothing, so that its own cost stays out of the measurement.
type discard struct{ header http.Header }

func (d discard) Header() http.Header       { return d.header }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}
