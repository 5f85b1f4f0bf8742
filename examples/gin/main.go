// Command gin limits the routes of a gin router. Gin has its own kind of middleware, so limit translates.
package main

import (
	"fmt"
	"net/http"
	"os"

	"github.com/gin-gonic/gin"

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
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.GET("/healthz", func(*gin.Context) {})
	limited := router.Group("/", limit(httplimit.Middleware(limiter, httplimit.ByIP, httplimit.Options{})))
	limited.GET("/hello/:name", func(c *gin.Context) { c.String(http.StatusOK, "hello %q\n", c.Param("name")) })
	return router
}

// limit makes a middleware of net/http one of gin: where it does not call the next handler, gin's chain ends, too.
func limit(middleware func(http.Handler) http.Handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		passed := false
		next := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			passed, c.Request = true, r
			c.Next()
		})
		middleware(next).ServeHTTP(c.Writer, c.Request)
		if !passed {
			c.Abort()
		}
	}
}
