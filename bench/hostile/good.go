package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/testnode"
)

// good are clients that behave. They ask at a steady, modest rate, so that what they see is the node and not themselves.
type good struct {
	node          *testnode.Node
	client        *http.Client
	asked, failed atomic.Int64
}

const (
	goodClients = 8
	goodPause   = 10 * time.Millisecond
	goodTarget  = "/good"
)

func newGood(node *testnode.Node) *good {
	return &good{node: node, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: goodClients}, Timeout: 10 * time.Second}}
}

// targets are what the good ask the upstream for.
func (g *good) targets() []string { return []string{goodTarget} }

func (g *good) run(ctx context.Context, d time.Duration) error {
	_, err := g.p99(ctx, d)
	return err
}

// p99 lets them ask for a while, half by the check API and half through the gateway.
func (g *good) p99(ctx context.Context, d time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var mu sync.Mutex
	var times []time.Duration
	var wait sync.WaitGroup
	for i := range goodClients {
		wait.Go(func() {
			tick := time.NewTicker(goodPause)
			defer tick.Stop()
			for n := i; ; n++ {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				began := time.Now()
				g.ask(n)
				mu.Lock()
				times = append(times, time.Since(began))
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	if len(times) < 100 {
		return 0, fmt.Errorf("only %d requests in %s", len(times), d)
	}
	slices.Sort(times)
	return times[len(times)*99/100], nil
}

func (g *good) ask(n int) {
	var resp *http.Response
	var err error
	if n%2 == 0 {
		resp, err = g.client.Post("http://"+g.node.HTTP+"/v1/check", "application/json", strings.NewReader(`{"subject":{"user":"good"}}`))
	} else {
		resp, err = g.client.Get("http://" + g.node.Gateway + goodTarget)
	}
	g.asked.Add(1)
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return
		}
	}
	g.failed.Add(1)
}
