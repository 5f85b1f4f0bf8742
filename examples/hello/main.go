// Command hello is a service to put sluice in front of: it says hello on port 3000.
package main

import (
	"fmt"
	"log"
	"net/http"
	"time"
)

func main() {
	server := &http.Server{
		Addr: "127.0.0.1:3000", ReadHeaderTimeout: 5 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "hello") }),
	}
	log.Fatal(server.ListenAndServe())
}
