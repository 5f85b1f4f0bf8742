// Command pgdown is make bar-pgdown: nodes start without their database, lose it while they decide, get it back, and follow when a standby
// takes its place.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/bench/internal/fleet"
	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testpg"
	"github.com/sluicehq/sluice/internal/testredis"
)

const (
	pairs    = 5
	calm     = 8 * time.Second
	patience = 20 * time.Second
)

var down = flag.Duration("down", 30*time.Second, "how long the database is away, five times")

func main() {
	b := bar.New("bar-pgdown")
	main := testredis.Program()
	defer main.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	startWithout(ctx, b, main)
	outages(ctx, b, main)
	failover(ctx, b, main)
	b.End()
}

// startWithout measures a start from the snapshot on disk, with neither the database nor a copy in Redis.
func startWithout(ctx context.Context, b *bar.Bar, main testnode.TB) {
	b.Say("starting without the database")
	pg := testpg.Start(main, testpg.Options{})
	opts := fleet.Options{URL: pg.Database(main).URL(), Redis: fleet.Redis(main).Addr(), Snapshot: true}
	node := testnode.Start(main, opts.Node("n"))
	if err := fleet.NewEditor(node).Apply(ctx, fleet.Pair(fleet.Base)); err != nil {
		b.Fatal(err)
	}
	shows(ctx, b, node, fleet.Base)
	if _, err := node.Stop(patience); err != nil {
		b.Fatal(err)
	}
	pg.Kill()
	opts.Redis = fleet.Redis(main).Addr() // an empty one
	took := make([]float64, 0, pairs)
	for range pairs {
		again := opts.Node("n")
		again.Dir = node.Dir
		began := time.Now()
		n := testnode.Start(main, again)
		shows(ctx, b, n, fleet.Base)
		took = append(took, ms(time.Since(began)))
		if !n.Ready(ctx) {
			b.Fatal(fmt.Errorf("the node decides and is not ready: %s", n.Log()))
		}
		n.Kill()
	}
	b.AtMost("start from the snapshot to the first decision, slowest of 5, ms", slices.Max(took), 1000, 1000)
	if err := os.Truncate(node.Dir+"/rules.snapshot", 100); err != nil {
		b.Fatal(err)
	}
	broken := opts.Node("n")
	broken.Dir = node.Dir
	n := testnode.Start(main, broken)
	b.Exactly("ready with a truncated snapshot and no database", count(n.Ready(ctx)), 0)
	pg.Restart()
	began := time.Now()
	for !n.Ready(ctx) && time.Since(began) < patience {
		time.Sleep(20 * time.Millisecond)
	}
	b.AtMost("ready after the database came, ms", ms(time.Since(began)), 5000, 5000)
	n.Kill()
}

// shows waits until a node decides by a limit.
func shows(ctx context.Context, b *bar.Bar, n *testnode.Node, limit int64) {
	watching, stop := context.WithCancel(ctx)
	w := fleet.NewWatch(watching, []*testnode.Node{n}, 1, time.Millisecond)
	_, err := w.Acts(ctx, limit, patience)
	stop()
	w.Wait()
	if err != nil {
		b.Fatal(err)
	}
}

// outages kills the database under load, time and again.
func outages(ctx context.Context, b *bar.Bar, main testnode.TB) {
	pg, redis := testpg.Start(main, testpg.Options{}), fleet.Redis(main)
	nodes := fleet.Start(main, fleet.Options{Nodes: 2, URL: pg.Database(main).URL(), Redis: redis.Addr()})
	edit := fleet.NewEditor(nodes[0])
	made := int64(0)
	change := func() error {
		return edit.Apply(ctx, fleet.Pair(fleet.Base+made))
	}
	if err := change(); err != nil {
		b.Fatal(err)
	}
	watching, stop := context.WithCancel(ctx)
	w := fleet.NewWatch(watching, nodes, 4, 4*time.Millisecond)
	if _, err := w.Acts(ctx, fleet.Base, patience); err != nil {
		b.Fatal(err)
	}
	var ratios, current []float64
	refused := int64(0)
	for i := range pairs {
		b.Say("outage %d of %d: %s of calm, %s without the database", i+1, pairs, calm, *down)
		w.Took()
		pause(ctx, calm)
		before := w.Took()
		pg.Kill()
		refused += count(unavailable(ctx, nodes[i%2]))
		pause(ctx, *down)
		refused += count(unavailable(ctx, nodes[i%2]))
		ratios = append(ratios, float64(p99(w.Took()))/float64(p99(before)))
		pg.Restart()
		back := time.Now()
		made++
		for change() != nil && time.Since(back) < patience { // the node's connections are old
			time.Sleep(10 * time.Millisecond)
		}
		at, err := w.Acts(ctx, fleet.Base+made, patience)
		if err != nil {
			b.Fatal(err)
		}
		current = append(current, ms(at.Sub(back)))
	}
	stop()
	w.Wait()
	for _, n := range nodes {
		n.Kill()
	}
	b.AtMost("decision p99 without the database, ratio, median of 5", bar.Median(ratios), 1.5, 1.05)
	b.Exactly("admin calls answered 503 of 10", refused, 2*pairs)
	b.AtMost("a change acting after the database is back, slowest of 5, ms", slices.Max(current), 5000, 5000)
	b.AtLeast("decisions", float64(w.Decisions.Load()), 10_000, 10_000)
	b.Exactly("errors", w.Errors.Load(), 0)
	b.Exactly("decisions that go back", w.Back.Load()+w.Mixed.Load(), 0)
}

// unavailable tells whether the administration API says that the database is away.
func unavailable(ctx context.Context, n *testnode.Node) bool {
	status, _, err := fleet.Ask(ctx, http.MethodGet, "http://"+n.Admin+"/v1/namespaces", nil)
	return err == nil && status == http.StatusServiceUnavailable
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func p99(values []time.Duration) time.Duration {
	if len(values) == 0 {
		return 1
	}
	slices.Sort(values)
	return max(values[len(values)*99/100], 1)
}

func count(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
