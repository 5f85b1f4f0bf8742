// Command echo limits the routes of an echo router, which wraps middleware of net/http by itself.
package main

import (
	"fmt"
	"net/http"
	"os"

	"github.com/labstack/echo/v5"

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
	router := echo.New()
	router.GET("/healthz", func(c *echo.Context) error { return c.NoContent(http.StatusOK) })
	limited := router.Group("", echo.WrapMiddleware(httplimit.Middleware(limiter, httplimit.ByIP, httplimit.Options{})))
	limited.GET("/hello/:name", func(c *echo.Context) error {
		return c.String(http.StatusOK, fmt.Sprintf("hello %q\n", c.Param("name")))
	})
	return router
}
