package control

import (
	"context"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/registry"
)

// bus is how nodes reach each other: Redis, or for a node alone its own memory.
type bus interface {
	// state tells which snapshot is there, and whether a relay keeps it current.
	state(ctx context.Context) (state, error)
	// fetch returns the sealed snapshot; empty: there is none.
	fetch(ctx context.Context) ([]byte, error)
	// campaign takes or renews the relay's lease for a time, unless another has it.
	campaign(ctx context.Context, id string, lease time.Duration) (bool, error)
	// resign gives the lease back, if it is ours.
	resign(ctx context.Context, id string) error
	// put replaces the snapshot, if the lease is ours. Where the same text was put before, it is not sent again unless it was lost.
	put(ctx context.Context, id string, s sealed, again bool) (bool, error)
	publish(ctx context.Context, n registry.Notice) error
	// subscribe calls fn for every notice until it fails, first with a zero one: from now on. Fn must not block.
	subscribe(ctx context.Context, fn func(registry.Notice)) error
	// beat tells that a node is alive, beats what all told, forget removes those who are gone.
	beat(ctx context.Context, node, text string) error
	beats(ctx context.Context) (map[string]string, error)
	forget(ctx context.Context, nodes []string) error
	close()
}

// state is what a bus has.
type state struct {
	revision sluice.Revision
	digest   string // empty: there is no snapshot
	relayed  bool   // somebody holds the lease
}

// alone is the bus of a node without Redis. Nobody else is on it, so the lease is always free.
type alone struct {
	mu    sync.Mutex
	held  sealed
	nodes map[string]string
	to    func(registry.Notice) // nil: nobody subscribed
}

func newAlone() *alone { return &alone{nodes: map[string]string{}} }

func (a *alone) state(context.Context) (state, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return state{a.held.revision, a.held.digest, true}, nil
}

func (a *alone) fetch(context.Context) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.held.text, nil
}

func (a *alone) campaign(context.Context, string, time.Duration) (bool, error) { return true, nil }

func (a *alone) resign(context.Context, string) error { return nil }

func (a *alone) put(_ context.Context, _ string, s sealed, _ bool) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held = s
	return true, nil
}

func (a *alone) publish(_ context.Context, n registry.Notice) error {
	a.mu.Lock()
	to := a.to
	a.mu.Unlock()
	if to != nil {
		to(n)
	}
	return nil
}

func (a *alone) subscribe(ctx context.Context, fn func(registry.Notice)) error {
	a.mu.Lock()
	a.to = fn
	a.mu.Unlock()
	fn(registry.Notice{})
	<-ctx.Done()
	return ctx.Err()
}

func (a *alone) beat(_ context.Context, node, text string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.nodes[node] = text
	return nil
}

func (a *alone) beats(context.Context) (map[string]string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make(map[string]string, len(a.nodes))
	for node, text := range a.nodes {
		all[node] = text
	}
	return all, nil
}

func (a *alone) forget(context.Context, []string) error { return nil }

func (a *alone) close() {}
