package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// outcome counts the answers by what they were.
type outcome struct {
	allowed, refused, other int64
	example                 string // of the others
}

// press sends all requests of all clients and judges the answers.
func press(ctx context.Context, addr string) (outcome, error) {
	var mu sync.Mutex
	var sum outcome
	var first error
	var wg sync.WaitGroup
	for client := range clients {
		transport := &http.Transport{
			DialContext:     (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(clientAddr(client))}}).DialContext,
			MaxConnsPerHost: parallel, MaxIdleConnsPerHost: parallel, IdleConnTimeout: time.Minute,
		}
		defer transport.CloseIdleConnections()
		for range parallel {
			wg.Go(func() {
				for range perConn {
					kind, example, err := ask(ctx, transport, addr)
					mu.Lock()
					switch {
					case err != nil:
						first = err
					case kind == http.StatusOK:
						sum.allowed++
					case kind == http.StatusTooManyRequests:
						sum.refused++
					default:
						sum.other++
						sum.example = example
					}
					mu.Unlock()
					if err != nil {
						return
					}
				}
			})
		}
	}
	wg.Wait()
	return sum, first
}

// ask sends one request. It returns 200 or 429 only for answers that have all they should.
func ask(ctx context.Context, transport *http.Transport, addr string) (kind int, example string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/api/items?page=2", nil)
	if err != nil {
		return 0, "", err
	}
	res, err := transport.RoundTrip(r)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, "", err
	}
	limits := strings.HasPrefix(res.Header.Get("RateLimit"), `"ip";r=`) && strings.HasPrefix(res.Header.Get("RateLimit-Policy"), `"ip";q=`)
	var problem struct {
		Type   string
		Status int
	}
	switch {
	case limits && res.StatusCode == http.StatusOK:
		return res.StatusCode, "", nil
	case limits && res.StatusCode == http.StatusTooManyRequests && res.Header.Get("Retry-After") != "" &&
		res.Header.Get("Content-Type") == "application/problem+json" && json.Unmarshal(body, &problem) == nil &&
		problem.Status == http.StatusTooManyRequests && strings.HasSuffix(problem.Type, "#quota-exceeded"):
		return res.StatusCode, "", nil
	}
	return 0, fmt.Sprintf("%s %v %s", res.Status, res.Header, body), nil
}
