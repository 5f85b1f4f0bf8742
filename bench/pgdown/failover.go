package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/bench/internal/fleet"
	"github.com/sluicehq/sluice/internal/postgres"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testpg"
)

// failover kills the primary in the middle of changes, promotes its synchronous standby, and looks for changes that were answered and are
// not there.
func failover(ctx context.Context, b *bar.Bar, main testnode.TB) {
	b.Say("primary killed, synchronous standby promoted")
	primary := testpg.Start(main, testpg.Options{})
	db := primary.Database(main)
	standby := primary.Standby(main)
	both := testpg.EitherURL(testpg.App, db.Name, primary, standby) + "&connect_timeout=2"
	nodes := fleet.Start(main, fleet.Options{Nodes: 2, URL: both, Redis: fleet.Redis(main).Addr()})
	edit := fleet.NewEditor(nodes[0])
	watching, stop := context.WithCancel(ctx)
	defer stop()
	w := fleet.NewWatch(watching, nodes, 2, 4*time.Millisecond)

	const kill, last = 60, 120
	var answered []int64
	var promoted time.Time
	acts := time.Duration(0)
	for n := int64(1); n <= last; n++ {
		if n == kill {
			go primary.Kill() // in the middle of a change
		}
		for began := time.Now(); ; {
			err := edit.Apply(ctx, fleet.Pair(fleet.Base+n))
			if err == nil {
				answered = append(answered, n)
				break
			}
			if n >= kill && promoted.IsZero() && !primary.Running() {
				standby.Promote()
				promoted = time.Now()
				began = promoted
			}
			if time.Since(began) > patience {
				b.Fatal(fmt.Errorf("change %d: %w", n, err))
			}
			time.Sleep(5 * time.Millisecond)
		}
		if !promoted.IsZero() && acts == 0 {
			at, err := w.Acts(ctx, fleet.Base+n, patience)
			if err != nil {
				b.Fatal(err)
			}
			acts = at.Sub(promoted)
		}
	}
	lost, err := missing(ctx, (&testpg.Database{Server: standby, Name: db.Name}).URL(), answered)
	if err != nil {
		b.Fatal(err)
	}
	stop()
	w.Wait()
	b.Exactly("changes answered around the failover", int64(len(answered)), last)
	b.Exactly("of these lost", lost, 0)
	b.AtMost("a change acting after the promotion, ms", ms(acts), 5000, 5000)
	b.Exactly("decisions that go back or mix after the failover", w.Back.Load()+w.Mixed.Load(), 0)
}

// missing counts the changes that are not in the history.
func missing(ctx context.Context, at string, answered []int64) (int64, error) {
	db, err := postgres.Open(ctx, postgres.Options{URL: at})
	if err != nil {
		return 0, err
	}
	defer db.Close()
	there := map[int64]bool{}
	for page := (registry.Page{Limit: 1000}); ; {
		list, err := db.As(fleet.Root).History(ctx, registry.HistoryFilter{Kind: registry.KindRule, Name: "first"}, page)
		if err != nil {
			return 0, err
		}
		for _, c := range list.Items {
			var r ruledoc.Rule
			if err := json.Unmarshal(c.After, &r); err != nil || len(r.Limits) != 1 {
				return 0, fmt.Errorf("history has %s", c.After)
			}
			there[r.Limits[0].Limit-fleet.Base] = true
		}
		if page.After = list.Next; list.Next == "" {
			break
		}
	}
	lost := int64(0)
	for _, n := range answered {
		if !there[n] {
			lost++
		}
	}
	return lost, nil
}
