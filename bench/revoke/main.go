// Command revoke is make bar-revoke: an API key is revoked, a block set, an override changed, again and again, in the database of three
// nodes that are asked about the subject all the time. It measures how long after the change the last of them acts by it.
package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/internal/apikey"
	"github.com/sluicehq/sluice/internal/postgres"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testpg"
	"github.com/sluicehq/sluice/internal/testredis"
)

const (
	pepper = "the pepper of bar-revoke, of more than 32 characters"
	rounds = 100 // of each kind of change
	// most is after how long a change is held for lost.
	most = 10 * time.Second
)

// rules: the first has a limit that only those with a valid key see, the second one that overrides change.
const rules = `
[[rule]]
name = "keys"
match = { routes = ["/key"] }
key = ["api_key"]
limits = [{ limit = 1000000, window = "1h" }]

[[rule]]
name = "users"
match = { routes = ["/user"] }
key = ["user"]
limits = [{ limit = 1000000, window = "1h" }]
`

var (
	root = registry.Actor{Name: "root", Grants: []registry.Grant{{Namespace: "*", Role: registry.Admin}}}
	by   = registry.Edit{Actor: "bar", Reason: "bar-revoke"}
)

func main() {
	b := bar.New("bar-revoke")
	main := testredis.Program()
	defer main.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	place := testpg.Start(main, testpg.Options{}).Database(main)
	redis := testredis.Single(main, testredis.Options{})
	db, err := postgres.Open(ctx, postgres.Options{URL: place.URL()})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	config := fmt.Sprintf("[redis]\nurl = \"redis://%s\"\n[control]\npepper = %q\n[identity]\ntrusted_proxies = [\"127.0.0.1/32\"]\n", redis.Addr(), pepper)
	w := &world{b: b, db: db.As(root)}
	for i := range 3 {
		w.nodes = append(w.nodes, testnode.Start(main, testnode.Options{Config: config, Rules: rules, Database: place.URL(), Name: fmt.Sprint("node-", i)}))
	}
	for _, c := range []struct {
		name   string
		change func(ctx context.Context, round int) (change, error)
	}{{"key revoked", w.key}, {"block set", w.block}, {"override changed", w.override}} {
		if err := w.measure(ctx, c.name, c.change); err != nil {
			b.Fatal(fmt.Errorf("%s: %w", c.name, err))
		}
	}
	b.End()
}

type world struct {
	b     *bar.Bar
	db    *postgres.Scoped
	nodes []*testnode.Node
}

// change is one to be made: the nodes see before, then make is called, then they see after.
type change struct {
	before, after func(n *testnode.Node) (bool, error)
	make          func(ctx context.Context) error
}

// measure makes a kind of change in all rounds.
func (w *world) measure(ctx context.Context, name string, prepare func(context.Context, int) (change, error)) error {
	var took []float64
	for round := range rounds {
		c, err := prepare(ctx, round)
		if err != nil {
			return err
		}
		if _, err := w.until(time.Now(), c.before); err != nil {
			return fmt.Errorf("round %d, before the change: %w", round, err)
		}
		began := time.Now() // the commit is in it
		if err := c.make(ctx); err != nil {
			return err
		}
		d, err := w.until(began, c.after)
		if err != nil {
			return fmt.Errorf("round %d, after the change: %w", round, err)
		}
		took = append(took, float64(d)/float64(time.Millisecond))
	}
	slices.Sort(took)
	w.b.Shown(name+": acts on all nodes, ms, median", took[len(took)/2])
	w.b.AtMost(name+": acts on all nodes, ms, p99", took[len(took)*99/100], 1000, 250)
	return nil
}

// until asks all nodes at the same time until each has seen something, and returns how long after a time the last one did.
func (w *world) until(since time.Time, seen func(*testnode.Node) (bool, error)) (time.Duration, error) {
	failed := make(chan error, len(w.nodes))
	for _, n := range w.nodes {
		go func() {
			for {
				ok, err := seen(n)
				if err == nil && !ok && time.Since(since) > most {
					err = fmt.Errorf("%s has not seen it after %v", n.HTTP, most)
				}
				if ok || err != nil {
					failed <- err
					return
				}
				time.Sleep(time.Millisecond)
			}
		}()
	}
	var err error
	for range w.nodes {
		if e := <-failed; e != nil {
			err = e
		}
	}
	return time.Since(since), err
}

// key is made, and revoked.
func (w *world) key(ctx context.Context, round int) (change, error) {
	text, id, hash := apikey.New(pepper)
	_, err := w.db.CreateKey(ctx, registry.Key{ID: id, Owner: fmt.Sprint("owner-", round), Hashes: [][]byte{hash}}, by)
	return change{
		before: func(n *testnode.Node) (bool, error) { return keyTaken(ctx, n, text) },
		make: func(ctx context.Context) error {
			_, err := w.db.RevokeKey(ctx, id, by)
			return err
		},
		after: func(n *testnode.Node) (bool, error) {
			taken, err := keyTaken(ctx, n, text)
			return !taken, err
		},
	}, err
}

// block is set for somebody who passed so far.
func (w *world) block(ctx context.Context, round int) (change, error) {
	user := fmt.Sprint("blocked-", round)
	sees := func(allowed bool) func(*testnode.Node) (bool, error) {
		return func(n *testnode.Node) (bool, error) {
			a, err := check(ctx, n, user)
			return a.Allowed == allowed, err
		}
	}
	return change{before: sees(true), after: sees(false), make: func(ctx context.Context) error {
		_, err := w.db.PutBlock(ctx, registry.Block{Who: registry.Who{Dimension: "user", ID: user}, Reason: "bar"}, by)
		return err
	}}, nil
}

// override is changed from one limit to another.
func (w *world) override(ctx context.Context, round int) (change, error) {
	user := fmt.Sprint("overridden-", round)
	o := registry.Override{Namespace: "default", Who: registry.Who{Dimension: "user", ID: user}, Rule: "users", Reason: "bar"}
	put := func(ctx context.Context, limit int64) error {
		o.Limits = []ruledoc.Limit{{Limit: limit, Window: ruledoc.Duration(time.Hour)}}
		kept, err := w.db.PutOverride(ctx, o, by)
		o.ID = kept.Body.ID
		return err
	}
	sees := func(limit int64) func(*testnode.Node) (bool, error) {
		return func(n *testnode.Node) (bool, error) {
			a, err := check(ctx, n, user)
			return len(a.Results) == 1 && a.Results[0].Limit == limit, err
		}
	}
	return change{before: sees(500_000), after: sees(700_000), make: func(ctx context.Context) error { return put(ctx, 700_000) }}, put(ctx, 500_000)
}
