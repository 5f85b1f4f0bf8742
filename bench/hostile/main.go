// Command hostile is make bar-hostile: a node under ordinary load is attacked in every way at once, in turns with calm, and
// has to go on serving those who behave: slow connections, huge headers, thousands of descriptors, malformed messages of
// every kind, broken rules files, and requests that hide others.
package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/bench/internal/load"
	"github.com/sluicehq/sluice/internal/gateway/smuggle"
	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testredis"
)

const (
	pairs = 5               // of calm and attack
	span  = 4 * time.Second // of each
	slow  = 2000            // connections that hardly speak
	// maxGrowth of the node's memory, in MB: 2,000 connections hold a goroutine and buffers each.
	maxGrowth = 150
)

const rules = `
[[rule]]
name = "everyone"
key = ["user"]
limits = [{ limit = 10000000, window = "1h" }]
`

func main() {
	b := bar.New("bar-hostile")
	main := testredis.Program()
	defer main.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()

	upstream, err := smuggle.Listen()
	if err != nil {
		b.Fatal(err)
	}
	defer upstream.Close()
	redis := testredis.Single(main, testredis.Options{})
	node := testnode.Start(main, testnode.Options{Rules: rules, Gateway: true, Config: fmt.Sprintf(`
[redis]
url = "redis://%s"
[[gateway.upstream]]
name = "u"
url = "http://%s"
[[gateway.route]]
upstream = "u"
`, redis.Addr(), upstream.Addr())})

	good := newGood(node)
	if err := good.run(ctx, time.Second); err != nil { // connections, caches
		b.Fatal(err)
	}
	before := load.ProcessMemory(node.PID())
	var ratios []float64
	attacks, err := newAttacks(node)
	if err != nil {
		b.Fatal(err)
	}
	for range pairs {
		calm, err := good.p99(ctx, span)
		if err != nil {
			b.Fatal(err)
		}
		stop := attacks.start(ctx)
		attacked, err := good.p99(ctx, span)
		stop()
		if err != nil {
			b.Fatal(fmt.Errorf("under attack: %w", err))
		}
		ratios = append(ratios, float64(attacked)/float64(calm))
		b.Say("p99 %s calm, %s under attack; memory %d MB; %d attacks so far", calm, attacked, load.ProcessMemory(node.PID())>>20, attacks.sent.Load())
	}
	smuggled := judge(ctx, b, node, upstream, good.targets())
	faults := attacks.unexpected()
	for _, text := range faults {
		b.Say("unexpected: %s", text)
	}

	b.AtMost("p99 of the good under attack : calm, median of 5", bar.Median(ratios), 2, 1.5)
	b.Exactly("their requests that failed", good.failed.Load(), 0)
	b.Shown("their requests", float64(good.asked.Load()))
	b.Shown("attacks", float64(attacks.sent.Load()))
	b.AtLeast("slow connections open at once", float64(attacks.slowest.Load()), slow*0.95, slow)
	b.Exactly("attacks answered as if they were fine", int64(len(faults)), 0)
	b.Exactly("smuggling cases judged bad", smuggled, 0)
	b.AtMost("growth of memory, MB", float64(load.ProcessMemory(node.PID())-before)/(1<<20), maxGrowth, 100)
	b.Exactly("panics in the log", int64(strings.Count(node.Log(), "panic")), 0)
	b.Exactly("node alive and ready (1: yes)", alive(ctx, node), 1)
	b.End()
}

// judge sends the corpus through the gateway and counts what the upstream should not have seen.
func judge(ctx context.Context, b *bar.Bar, node *testnode.Node, upstream *smuggle.Upstream, others []string) int64 {
	_, _ = upstream.Take()
	cases := smuggle.Corpus()
	for _, c := range cases {
		if _, err := c.Send(ctx, node.Gateway); err != nil {
			b.Fatal(err)
		}
	}
	targets, bad := upstream.Take()
	for _, fault := range smuggle.Judge(cases, without(targets, others)) {
		bad = append(bad, fault.Error())
	}
	for _, text := range bad {
		b.Say("smuggled: %s", text)
	}
	b.Shown("smuggling cases", float64(len(cases)))
	return int64(len(bad))
}

func without(targets, others []string) []string {
	var left []string
	for _, t := range targets {
		keep := true
		for _, o := range others {
			keep = keep && t != o
		}
		if keep {
			left = append(left, t)
		}
	}
	return left
}

func alive(ctx context.Context, node *testnode.Node) int64 {
	if node.Ready(ctx) {
		return 1
	}
	return 0
}
