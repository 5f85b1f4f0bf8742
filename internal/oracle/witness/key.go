package witness

import (
	"context"
	"errors"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/oracle"
	"github.com/sluicehq/sluice/redisstore"
)

// Counters returns the counters that the charges go to, as a store on Redis with default options names them. sharded
// tells that slots decide which of them one script call can touch.
func Counters(charges []sluice.Charge, sharded bool) []oracle.Counter {
	catcher := &keyCatcher{}
	store := redisstore.New(catcher, redisstore.Options{})
	counters := make([]oracle.Counter, len(charges))
	for i := range charges {
		charge := charges[i]
		store.Peek(context.Background(), [][]sluice.Charge{{charge}})
		counters[i] = oracle.Counter{Key: catcher.key, Limit: charge.Limit}
		if sharded {
			counters[i].Shard = redisstore.Slot(catcher.key)
		}
	}
	return counters
}

// keyCatcher is a connection to nowhere that remembers which key it was asked about.
type keyCatcher struct{ key string }

func (c *keyCatcher) Sharded() bool { return false }

func (c *keyCatcher) Run(_ context.Context, calls []*redisstore.Call) {
	for _, call := range calls {
		c.key = strings.Clone(call.Keys[0]) // the store reuses the memory
		call.Err = errors.New("not a real connection")
	}
}
