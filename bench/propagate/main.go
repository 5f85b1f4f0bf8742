// Command propagate is make bar-propagate: three nodes under load while rules change in the database. It measures how soon a change acts on
// all of them, with the listener's connection whole, cut and silent, and looks for decisions that mix revisions or go back.
package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"time"

	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/bench/internal/fleet"
	"github.com/sluicehq/sluice/internal/testpg"
	"github.com/sluicehq/sluice/internal/testredis"
)

const (
	nodes    = 3
	changes  = 200
	impaired = 8   // changes while the listener is cut, and as many while it is silent
	burst    = 100 // changes without a pause
	patience = 20 * time.Second
)

func main() {
	b := bar.New("bar-propagate")
	main := testredis.Program()
	defer main.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()

	pg, redis := testpg.Start(main, testpg.Options{}), fleet.Redis(main)
	db := pg.Database(main)
	wire, err := fleet.NewWire(pg.Addr())
	if err != nil {
		b.Fatal(err)
	}
	listen, err := url.Parse(db.URL())
	if err != nil {
		b.Fatal(err)
	}
	listen.Host = wire.Addr()
	running := fleet.Start(main, fleet.Options{Nodes: nodes, URL: db.URL(), Listen: listen.String(), Redis: redis.Addr()})
	r := &run{b: b, edit: fleet.NewEditor(running[0])}
	r.change(ctx) // before the watch: there are no rules yet

	watching, stop := context.WithCancel(ctx)
	defer stop()
	r.watch = fleet.NewWatch(watching, running, 4, 5*time.Millisecond)
	r.settle(ctx)
	b.Say("%d changes, one after the other", changes)
	r.calls = nil
	whole := r.measure(ctx, changes, 100*time.Millisecond)
	calls := slices.Clone(r.calls)
	b.Say("%d changes while the listener's connection is cut", impaired)
	wire.Cut()
	cut := r.measure(ctx, impaired, time.Second)
	wire.Heal()
	b.Say("%d changes while the listener's connection is silent", impaired)
	time.Sleep(3 * time.Second) // the relay listens again
	wire.Silence()
	silent := r.measure(ctx, impaired, time.Second)
	wire.Heal()
	b.Say("%d changes without a pause", burst)
	began := time.Now()
	for range burst {
		r.change(ctx)
	}
	r.settle(ctx)
	took := time.Since(began)
	stop()
	r.watch.Wait()

	b.Exactly("changes made", int64(len(whole)), changes)
	b.AtMost("acting on all nodes p99, ms", ms(percentile(whole, 0.99)), 250, 250)
	b.AtMost("slowest, ms", ms(slices.Max(whole)), 1000, 1000)
	b.Shown("median, ms", ms(percentile(whole, 0.5)))
	b.Shown("of it the operator's call: median, ms", ms(percentile(calls, 0.5)))
	b.Shown("of it the operator's call: p99, ms", ms(percentile(calls, 0.99)))
	b.AtMost("slowest with the listener cut, ms", ms(slices.Max(cut)), 5000, 5000)
	b.AtMost("slowest with the listener silent, ms", ms(slices.Max(silent)), 5000, 5000)
	b.Shown(fmt.Sprintf("%d changes in a burst and acting, ms", burst), ms(took))
	b.AtLeast("decisions looked at", float64(r.watch.Decisions.Load()), 50_000, 50_000)
	b.Exactly("that mix two revisions", r.watch.Mixed.Load(), 0)
	b.Exactly("that go back", r.watch.Back.Load(), 0)
	b.Exactly("errors", r.watch.Errors.Load(), 0)
	b.End()
}

// run is a measurement under way.
type run struct {
	b     *bar.Bar
	edit  *fleet.Editor
	watch *fleet.Watch
	made  int64
	calls []time.Duration // how long each call of the API took
}

// change gives both rules another limit, and returns when that was asked for.
func (r *run) change(ctx context.Context) time.Time {
	r.made++
	asked := time.Now()
	if err := r.edit.Apply(ctx, fleet.Pair(fleet.Base+r.made)); err != nil {
		r.b.Fatal(err)
	}
	r.calls = append(r.calls, time.Since(asked))
	return asked
}

// settle waits until the last change acts.
func (r *run) settle(ctx context.Context) time.Time {
	at, err := r.watch.Acts(ctx, fleet.Base+r.made, patience)
	if err != nil {
		r.b.Fatal(err)
	}
	return at
}

// measure makes changes one after the other, and tells how long each took from the operator's call to the last node's first decision by it.
func (r *run) measure(ctx context.Context, n int, pause time.Duration) []time.Duration {
	took := make([]time.Duration, 0, n)
	for range n {
		asked := r.change(ctx)
		took = append(took, r.settle(ctx).Sub(asked))
		time.Sleep(rand.N(pause)) // so that changes do not fall into step with anything
	}
	return took
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func percentile(values []time.Duration, p float64) time.Duration {
	s := slices.Sorted(slices.Values(values))
	return s[min(int(p*float64(len(s))), len(s)-1)]
}
