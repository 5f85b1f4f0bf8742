package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/internal/apikey"
	"github.com/sluicehq/sluice/internal/directory"
	"github.com/sluicehq/sluice/internal/postgres"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/testpg"
)

const (
	floodRate = 5500 // unknown keys per second
	floodFor  = 10 * time.Second
	coldKeys  = 200 // valid keys that the node has not seen, spread over a flood
)

// counted counts the queries.
type counted struct {
	*postgres.DB
	queries atomic.Int64
}

// Records implements directory.Database.
func (c *counted) Records(ctx context.Context, whos []registry.Who) ([]registry.Record, error) {
	c.queries.Add(1)
	return c.DB.Records(ctx, whos)
}

// flood sends unknown keys, alone and together with valid ones that nobody has in memory. Guessed ids are recognised as such; ids that
// were handed out and are on record no more have to be asked for.
func flood(ctx context.Context, b *bar.Bar, place *testpg.Database) error {
	plain, err := postgres.Open(ctx, postgres.Options{URL: place.URL()})
	if err != nil {
		return err
	}
	defer plain.Close()
	db := &counted{DB: plain}
	live := directory.NewLive(directory.New(nil), db, directory.LiveOptions{Pepper: pepper})
	run, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { _ = live.Run(run) })
	defer func() { cancel(); running.Wait() }()

	for _, c := range []struct {
		name   string
		pepper string
		decide bool
	}{{"guessed keys", "somebody's guess", true}, {"deleted keys", pepper, false}} {
		f := &attack{live: live, pepper: c.pepper}
		before := db.queries.Load()
		rate := f.run(ctx, nil)
		b.AtLeast(c.name+" per second", rate, 5000, 5000)
		b.AtMost(c.name+": queries per second", float64(db.queries.Load()-before)/floodFor.Seconds(), 10, 1)
		valid, err := createKeys(ctx, plain)
		if err != nil {
			return err
		}
		rate = f.run(ctx, valid)
		slices.Sort(f.took)
		b.Shown(c.name+" per second, with valid ones among them", rate)
		b.Exactly(c.name+": valid keys answered wrongly", f.wrong.Load(), 0)
		p99 := float64(f.took[len(f.took)*99/100]) / float64(time.Millisecond)
		if c.decide {
			b.AtMost(c.name+": a valid key not in memory, ms, p99", p99, 100, 20)
		} else {
			b.AimedAtMost(c.name+": a valid key not in memory, ms, p99", p99, 100)
		}
		b.Exactly(c.name+": unknown keys taken", f.taken.Load(), 0)
	}
	return nil
}

func createKeys(ctx context.Context, db *postgres.DB) ([]string, error) {
	root := registry.Actor{Name: "root", Grants: []registry.Grant{{Namespace: "*", Role: registry.Admin}}}
	var texts []string
	for i := range coldKeys {
		text, id, hash := apikey.New(pepper)
		texts = append(texts, text)
		_, err := db.As(root).CreateKey(ctx, registry.Key{ID: id, Owner: fmt.Sprint("owner-", i), Hashes: [][]byte{hash}}, registry.Edit{Actor: "bar"})
		if err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// attack is a flood of unknown keys.
type attack struct {
	live         *directory.Live
	pepper       string
	wrong, taken atomic.Int64

	mu   sync.Mutex
	took []time.Duration
}

// run sends unknown keys at the rate, and valid ones evenly among them. It returns the rate it reached.
func (a *attack) run(ctx context.Context, valid []string) float64 {
	unknown := make([]string, int(floodRate*floodFor.Seconds()))
	for i := range unknown { // beforehand: making one costs more than refusing it
		unknown[i], _, _ = apikey.New(a.pepper)
	}
	var all sync.WaitGroup
	began, sent, shown := time.Now(), 0, 0
	for now := range tick(time.Millisecond, floodFor) {
		for ; sent < len(unknown) && sent < int(now.Seconds()*floodRate); sent++ {
			all.Go(func() { a.refuse(ctx, unknown[sent]) })
		}
		for ; shown < len(valid) && shown < int(now.Seconds()*float64(len(valid))/floodFor.Seconds()); shown++ {
			all.Go(func() { a.accept(ctx, valid[shown]) })
		}
	}
	all.Wait()
	return float64(sent) / time.Since(began).Seconds()
}

// tick yields the time since it began, again and again.
func tick(every, total time.Duration) func(yield func(time.Duration) bool) {
	return func(yield func(time.Duration) bool) {
		t := time.NewTicker(every)
		defer t.Stop()
		for began := time.Now(); time.Since(began) < total; <-t.C {
			if !yield(time.Since(began)) {
				return
			}
		}
	}
}

func (a *attack) refuse(ctx context.Context, text string) {
	if _, ok := a.live.Verify(ctx, text); ok {
		a.taken.Add(1)
	}
}

func (a *attack) accept(ctx context.Context, text string) {
	began := time.Now()
	_, ok := a.live.Verify(ctx, text)
	took := time.Since(began)
	if !ok {
		a.wrong.Add(1)
	}
	a.mu.Lock()
	a.took = append(a.took, took)
	a.mu.Unlock()
}
