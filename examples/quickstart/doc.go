// Command quickstart says hello, and limits every client to five requests a minute. The counters are
// in Redis, shared by all processes that run it; while Redis does not answer, each process counts by itself, and its
// answers say so.
//
//	REDIS_URL=redis://127.0.0.1:6379 PORT=8080 go run ./quickstart
//
// The program is main.go, 15 lines; quickstart/show runs and checks it.
package main
