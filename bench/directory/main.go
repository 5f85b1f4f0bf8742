// Command directory is make bar-directory: a node with 10 million subjects and 100,000 overrides in its database, asked about them as
// often as customers come, few of them often and most of them seldom. It measures the node's memory, what the directory costs in
// decisions per second against a node without one, and what unknown API keys can do to the database and to those with valid ones.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/bench/internal/load"
	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testpg"
	"github.com/sluicehq/sluice/internal/testredis"
)

// rules count every user. One subject in a hundred has an override.
const rules = `
[[rule]]
name = "users"
key = ["user"]
limits = [{ limit = 1000000, window = "1h" }]
`

const pepper = "the pepper of bar-directory, of more than 32 characters"

func main() {
	subjects := flag.Int("subjects", 10_000_000, "subjects in the database")
	draws := flag.Int("draws", 1_000_000, "checks before the measurement, and in it")
	b := bar.New("bar-directory")
	main := testredis.Program()
	defer main.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()

	server := testpg.Start(main, testpg.Options{Config: []string{"shared_buffers=1GB", "max_wal_size=8GB"}})
	place := server.Database(main)
	began := time.Now()
	if err := populate(ctx, place, *subjects); err != nil {
		b.Fatal(err)
	}
	b.Say("%d subjects and %d overrides written in %v", *subjects, *subjects/100, time.Since(began).Round(time.Second))

	// Two installations, each of one node and its Redis.
	with, redisWith := install(main, "with", place.URL())
	without, redisWithout := install(main, "without", "")
	parts := func(side int) [len(partNames)]time.Duration {
		node, redis := with, redisWith
		if side == 1 {
			node, redis = without, redisWithout
		}
		return [...]time.Duration{load.ProcessCPU(node.PID()), load.ProcessCPU(redis.PID()), load.FamilyCPU(server.PID()), load.ProcessCPU(os.Getpid())}
	}
	r := newRace(with, without, parts, *subjects, *draws)
	if err := r.warm(ctx); err != nil {
		b.Fatal(err)
	}
	b.Say("%d checks done, the node has %d MB", *draws, memory(with))
	if err := r.run(ctx, b); err != nil {
		b.Fatal(err)
	}
	r.report(b)
	b.AtMost("memory of the node at most, MB", float64(memory(with)), 300, 200)
	b.Shown("memory of the node without a directory at most, MB", float64(memory(without)))
	with.Kill()
	without.Kill()
	if err := flood(ctx, b, place); err != nil {
		b.Fatal(err)
	}
	b.End()
}

// install starts a Redis and a node, with a database or without. Nobody turns a request away here for being slow: what is measured is
// the work.
func install(main *testredis.Main, name, database string) (*testnode.Node, *testredis.Server) {
	redis := testredis.Single(main, testredis.Options{})
	config := fmt.Sprintf("[redis]\nurl = \"redis://%s\"\n[limiter]\ntimeout = \"500ms\"\n[control]\npepper = %q\n", redis.Addr(), pepper)
	return testnode.Start(main, testnode.Options{Config: config, Rules: rules, Database: database, Name: name}), redis
}

// memory is the most that a node ever had in memory, in MB.
func memory(n *testnode.Node) int64 { return load.PeakMemory(n.PID()) >> 20 }
