// Command chi limits the routes of a chi router. Middleware of net/http is middleware of chi.
package main

import (
	"fmt"
	"net/http"
	"os"

	"github.com/go-chi/chi/v5"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/httplimit"
	"github.com/sluicehq/sluice/memstore"
)

func main() {
	limiter := sluice.New(memstore.New(memstore.Options{}), sluice.PerKey(sluice.PerMinute(5)), sluice.Options{})
	fmt.Fprintln(os.Stderr, http.ListenAndServe("127.0.0.1:8080", newRouter(limiter)))
	os.Exit(1)
}

// newRouter limits everything but the health check.
func newRouter(limiter sluice.Checker) http.Handler {
	router := chi.NewRouter()
	router.Get("/healthz", func(http.ResponseWriter, *http.Request) {})
	router.Group(func(limited chi.Router) {
		// Not after chi's middleware.RealIP, which lets clients choose their address.
		limited.Use(httplimit.Middleware(limiter, httplimit.ByIP, httplimit.Options{}))
		limited.Get("/hello/{name}", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "hello %q\n", chi.URLParam(r, "name"))
		})
	})
	return router
}
