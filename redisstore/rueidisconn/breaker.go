package rueidisconn

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// breaker stops asking a shard that does not answer. It opens after a few failures in a row; then a probe of its own,
// not anybody's decision, asks again at jittered intervals until it succeeds.
//
// It is ours because the decision path must neither lock nor allocate, which the usual libraries do on every call.
type breaker struct {
	failures atomic.Int32 // in a row
	isOpen   atomic.Bool
	// opened starts the probe. It is called once for each opening.
	opened func(*breaker)
}

// openAfter failures in a row the breaker opens. Fewer open it at a hiccup, more make more callers wait for nothing.
const openAfter = 5

// The first probe comes after about firstProbe, the next after twice that, at most after lastProbe: the service is
// exact again within a second of a shard's return.
const (
	firstProbe = 50 * time.Millisecond
	lastProbe  = 400 * time.Millisecond
)

// errNoVerdict tells record that a call says nothing about the shard.
var errNoVerdict = errors.New("no verdict")

func (b *breaker) closed() bool { return !b.isOpen.Load() }

// record counts a call's result.
func (b *breaker) record(err error) {
	switch {
	case err == nil:
		if b.failures.Load() != 0 { // a load is cheaper than a store all cores fight for
			b.failures.Store(0)
		}
	case errors.Is(err, errNoVerdict):
	case b.failures.Add(1) >= openAfter && b.isOpen.CompareAndSwap(false, true):
		b.opened(b)
	}
}

// probeUntilClosed asks until the shard answers or the context ends.
func (b *breaker) probeUntilClosed(ctx context.Context, probe func(context.Context) error) {
	for pause := firstProbe; ; pause = min(2*pause, lastProbe) {
		select {
		case <-time.After(jitter(pause)):
		case <-ctx.Done():
			return
		}
		if probe(ctx) == nil {
			b.failures.Store(0)
			b.isOpen.Store(false)
			return
		}
	}
}
