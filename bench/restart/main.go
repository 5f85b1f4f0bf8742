// Command restart is make bar-restart: three nodes behind a balancer are restarted one after the other, ten times around,
// under load. Nobody may notice.
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/bench/internal/load"
	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testredis"
)

const (
	nodes    = 3
	rounds   = 10
	rate     = 2400 // requests per second
	wanted   = 200_000
	longest  = 10 * time.Second // an exit
	patience = 4 * time.Minute
)

const rules = `
[[rule]]
name = "everyone"
key = ["user"]
limits = [{ limit = 10000000, window = "1h" }]
`

func main() {
	b := bar.New("bar-restart")
	main := testredis.Program()
	defer main.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()

	redis := testredis.Single(main, testredis.Options{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }))
	defer upstream.Close()
	config := fmt.Sprintf(`
[redis]
url = "redis://%s"
[[gateway.upstream]]
name = "hello"
url = "%s"
[[gateway.route]]
path = "/"
upstream = "hello"
`, redis.Addr(), upstream.URL)
	start := func() *testnode.Node {
		return testnode.Start(main, testnode.Options{Config: config, Rules: rules, Gateway: true})
	}

	lb := newBalancer()
	var running []*testnode.Node
	for range nodes {
		n := start()
		running = append(running, n)
		lb.add(ctx, n)
	}
	front := httptest.NewServer(lb)
	defer front.Close()

	traffic := newTraffic(front.URL)
	loadCtx, stop := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() { load.Steady(loadCtx, rate, askers, traffic.send) })

	slowest, failedExits := time.Duration(0), int64(0)
	for round := range rounds {
		for i := range running {
			took, err := running[i].Stop(2 * longest)
			if err != nil {
				failedExits++
				b.Say("exit of node %d: %v\n%s", i, err, running[i].Log())
			}
			slowest = max(slowest, took)
			lb.remove(running[i])
			running[i] = start()
			lb.add(ctx, running[i])
		}
		b.Say("round %d of %d: %d requests, %d failed", round+1, rounds, traffic.sent.Load(), traffic.failed.Load())
	}
	for traffic.sent.Load() < wanted && ctx.Err() == nil {
		time.Sleep(100 * time.Millisecond)
	}
	stop()
	wait.Wait()
	for _, text := range traffic.faults() {
		b.Say("failed: %s", text)
	}
	b.AtLeast("requests", float64(traffic.sent.Load()), wanted, wanted)
	b.Exactly("failed", traffic.failed.Load(), 0)
	b.Exactly("restarts", int64(rounds*nodes)-failedExits, rounds*nodes)
	b.AtMost("longest exit, s", slowest.Seconds(), longest.Seconds(), longest.Seconds())
	b.End()
}

// traffic is requests through the balancer: half ask the check API, half go through the gateway.
type traffic struct {
	url          string
	client       *http.Client
	sent, failed atomic.Int64

	mu    sync.Mutex
	texts []string // the first few failures
}

const askers = 96

func newTraffic(url string) *traffic {
	return &traffic{url: url, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: askers}, Timeout: 15 * time.Second}}
}

func (l *traffic) send(n int64) {
	var resp *http.Response
	var err error
	if n%2 == 0 {
		resp, err = l.client.Post(l.url+"/v1/check", "application/json", strings.NewReader(fmt.Sprintf(`{"subject":{"user":"u%d"}}`, n%1000)))
	} else {
		resp, err = l.client.Get(l.url + "/hello")
	}
	l.sent.Add(1)
	if err == nil {
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return
		}
		err = fmt.Errorf("status %s", resp.Status)
	}
	l.failed.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.texts) < 10 {
		l.texts = append(l.texts, err.Error())
	}
}

func (l *traffic) faults() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.texts
}
