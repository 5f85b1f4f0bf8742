// Package witness stands between a caller and a store, and between the store and Redis, and writes down for the oracle
// what is asked and answered: decisions as the caller was told them, give-backs as Redis applied them. It changes no
// decision.
package witness

import (
	"context"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/oracle"
)

// Witness takes charges from a store and writes a log of the answers. It is safe for concurrent use.
type Witness struct {
	store sluice.Store
	log   *oracle.Writer
}

// New returns a witness of the store's answers. The store must stand on a Conn of this package.
func New(store sluice.Store, log *oracle.Writer) *Witness { return &Witness{store, log} }

// Take takes one group and returns its verdict. of[i] is the index of the counter that group[i] charges, in the list
// the log was started with.
//
// A single charge that asks for no receipt may be decided by a script that does not tell the time. Conn then has it told
// and leaves it for Take, which completes the state with it.
func (w *Witness) Take(ctx context.Context, group []sluice.Charge, of []int) (allowed bool) {
	var decided clock
	called := time.Now().UnixMicro()
	w.store.Take(decided.in(ctx), [][]sluice.Charge{group})
	returned := time.Now().UnixMicro()
	if s := &group[0].State; s.Time == 0 && s.Err == nil {
		s.Time = decided.us
	}
	return w.log.Group(called, returned, group, of)
}

// clock carries the time of a caller's own script call from Conn back to Take, through the context: nothing else of a
// caller reaches both. A call made for several callers tells its time by itself.
type clock struct{ us int64 }

type clockKey struct{}

func (c *clock) in(ctx context.Context) context.Context { return context.WithValue(ctx, clockKey{}, c) }

func clockOf(ctx context.Context) *clock {
	c, _ := ctx.Value(clockKey{}).(*clock)
	return c
}
