package main

import (
	"context"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/testnode"
)

// balancer sends requests in turn to the nodes that say they are ready. It retries nothing: whatever a node fails, the
// client sees.
type balancer struct {
	turn  atomic.Uint64
	proxy *httputil.ReverseProxy

	mu    sync.Mutex
	nodes map[*testnode.Node]context.CancelFunc
	ready atomic.Pointer[[]*testnode.Node]
}

// lookEvery is how often readiness is asked for; a node stays reachable for longer after it said no.
const lookEvery = 200 * time.Millisecond

func newBalancer() *balancer {
	b := &balancer{nodes: map[*testnode.Node]context.CancelFunc{}}
	b.ready.Store(new([]*testnode.Node))
	b.proxy = &httputil.ReverseProxy{
		Transport: &http.Transport{MaxIdleConnsPerHost: askers},
		Rewrite: func(r *httputil.ProxyRequest) {
			ready := *b.ready.Load()
			node := ready[b.turn.Add(1)%uint64(len(ready))]
			host := node.Gateway
			if strings.HasPrefix(r.In.URL.Path, "/v1/") {
				host = node.HTTP
			}
			r.SetURL(&url.URL{Scheme: "http", Host: host})
		},
	}
	return b
}

func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if len(*b.ready.Load()) == 0 {
		http.Error(w, "no node is ready", http.StatusBadGateway)
		return
	}
	b.proxy.ServeHTTP(w, r)
}

// add looks at a node from now on. It is used at once, since it has said that it serves.
func (b *balancer) add(ctx context.Context, n *testnode.Node) {
	ctx, cancel := context.WithCancel(ctx)
	b.mu.Lock()
	b.nodes[n] = cancel
	b.mu.Unlock()
	b.set(n, true)
	go func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if ok := n.Ready(ctx); ctx.Err() == nil {
					b.set(n, ok)
				}
			}
		}
	}()
}

func (b *balancer) remove(n *testnode.Node) {
	b.mu.Lock()
	b.nodes[n]()
	delete(b.nodes, n)
	b.mu.Unlock()
	b.set(n, false)
}

func (b *balancer) set(n *testnode.Node, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.nodes[n]; !known {
		ok = false
	}
	var next []*testnode.Node
	for _, other := range *b.ready.Load() {
		if other != n {
			next = append(next, other)
		}
	}
	if ok {
		next = append(next, n)
	}
	b.ready.Store(&next)
}
