// Command engine measures what Limiter.Check costs beyond the Redis script itself: against a bare rueidis loop on the
// cheapest single-limit script, against redis-benchmark's best pipelined rate for that script, and for a lone caller
// against a bare EVALSHA.
package main

import (
	"context"
	"flag"
	"time"

	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/internal/testredis"
)

var (
	rounds  = flag.Int("rounds", 7, "interleaved rounds; the median counts")
	runTime = flag.Duration("run", 700*time.Millisecond, "length of one run")
	cluster = flag.Bool("cluster", true, "measure a cluster, too")
)

const users = 100_000

func main() {
	b := bar.New("bar-engine")
	program := testredis.Program()
	defer program.Close()
	ctx := context.Background()

	server := testredis.Single(program, testredis.Options{})
	single := &bed{name: "single", servers: []*testredis.Server{server}, addrs: []string{server.Addr()}}
	if err := single.measure(ctx, b, 1.1, 1.5); err != nil {
		b.Fatal(err)
	}
	if err := single.lone(ctx, b); err != nil {
		b.Fatal(err)
	}
	if *cluster {
		set := testredis.Cluster(program, testredis.Options{NoReplicas: true})
		three := &bed{name: "cluster", servers: set.Nodes(), addrs: set.Addrs(), cluster: true}
		if err := three.measure(ctx, b, 0.80, 0.95); err != nil {
			b.Fatal(err)
		}
	}
	b.End()
}
