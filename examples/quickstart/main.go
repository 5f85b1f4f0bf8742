package main

import (
	"net/http"
	"os"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/httplimit"
	"github.com/sluicehq/sluice/memstore"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

func main() {
	store, _ := rueidisconn.OpenStore(os.Getenv("REDIS_URL")) // such as redis://127.0.0.1:6379
	limiter := sluice.New(store, sluice.PerKey(sluice.PerMinute(5)), sluice.Options{Fallback: memstore.New(memstore.Options{})})
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello\n")) })
	panic(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), httplimit.Middleware(limiter, httplimit.ByIP, httplimit.Options{})(hello)))
}
