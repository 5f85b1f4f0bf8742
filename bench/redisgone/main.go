// Command redisgone is make bar-redis-gone: two nodes under load lose their Redis, once killed and once paused, and get it
// back. It counts what clients saw: how long decisions took, errors, labels, what the rules admitted, and how soon
// decisions were exact again.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testredis"
)

// The phases of a run. Windows of the local rule have to lie wholly inside the outage.
const (
	warmUp   = 3 * time.Second
	calm     = 15 * time.Second
	outage   = 15 * time.Second
	recovery = 6 * time.Second
	rate     = 2500 // requests per second over both nodes
	deadline = 10 * time.Millisecond
)

// rules has one of each policy. The limits of allow and deny are out of reach; that of local is not.
const rules = `
[[rule]]
name = "local"
match = { routes = ["/local"] }
key = ["user", "route"]
limits = [{ algorithm = "fixed_window", limit = 200, window = "2s" }]
on_store_error = "local"

[[rule]]
name = "allow"
match = { routes = ["/allow"] }
key = ["user", "route"]
limits = [{ limit = 1000000, window = "1h" }]
on_store_error = "allow"

[[rule]]
name = "deny"
match = { routes = ["/deny"] }
key = ["user", "route"]
limits = [{ limit = 1000000, window = "1h" }]
on_store_error = "deny"
`

const (
	localLimit  = 200
	localWindow = 2 * time.Second
)

func main() {
	b := bar.New("bar-redis-gone")
	main := testredis.Program()
	defer main.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()

	for _, fault := range []struct {
		name        string
		begin, heal func(*testredis.Server)
	}{
		{"killed", (*testredis.Server).Kill, (*testredis.Server).Restart},
		{"paused", (*testredis.Server).Pause, (*testredis.Server).Resume},
	} {
		server := testredis.Single(main, testredis.Options{})
		config := fmt.Sprintf("[redis]\nurl = \"redis://%s\"\n", server.Addr())
		nodes := []*testnode.Node{
			testnode.Start(main, testnode.Options{Config: config, Rules: rules}),
			testnode.Start(main, testnode.Options{Config: config, Rules: rules}),
		}
		b.Say("Redis %s: %s of calm, %s without Redis, %s after it", fault.name, calm, outage, recovery)
		r, err := measure(ctx, nodes, server, fault.begin, fault.heal)
		if err != nil {
			b.Fatal(err)
		}
		r.report(b, fault.name)
		for _, n := range nodes {
			n.Kill()
		}
		server.Kill()
	}
	b.End()
}

// measure runs the load through all phases.
func measure(ctx context.Context, nodes []*testnode.Node, server *testredis.Server, begin, heal func(*testredis.Server)) (*result, error) {
	g := newGenerator(nodes)
	r := &result{calmFrom: time.Now().Add(warmUp)}
	loadCtx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.run(loadCtx)
	}()
	steps := []struct {
		wait time.Duration
		do   func()
	}{
		{warmUp + calm, func() {
			r.begin = time.Now()
			begin(server)
			r.begun = time.Now()
		}},
		{outage, func() {
			r.heal = time.Now()
			heal(server)
			r.healed = time.Now()
		}},
		{recovery, stop},
	}
	for _, step := range steps {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(step.wait):
			step.do()
		}
	}
	<-done
	r.answers = g.answers()
	return r, nil
}
