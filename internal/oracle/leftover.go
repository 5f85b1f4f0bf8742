package oracle

import (
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
)

// Leftover is what a store holds for one counter after the last decision: what GET, or ZRANGE for a log, answered. The
// models decode it by the formats documented at the top of redisstore/scripts/*.lua.
type Leftover struct {
	Key string
	// ReadAt is the store's clock at the reading, in µs.
	ReadAt int64
	// Present tells that there is such a key.
	Present bool
	// Value is a counter's number.
	Value int64
	// Entries are the times of a log's units, one for each.
	Entries []int64
	// TTL is the rest of the key's life; negative: it has no end.
	TTL time.Duration
}

// lifeFault says in words what is wrong with the key's life: it must end, at most two windows and a minute from now.
// For a token bucket the window is the time in which it refills.
func (l *Leftover) lifeFault(limit sluice.Limit) string {
	if !l.Present {
		return ""
	}
	if l.TTL < 0 {
		return "the key never expires"
	}
	window := limit.Window
	if limit.Algorithm == sluice.TokenBucket {
		window = time.Duration(float64(limit.Window) * float64(limit.Capacity()) / float64(limit.Limit))
	}
	if longest := 2*window + time.Minute; l.TTL > longest {
		return fmt.Sprintf("the key expires in %s, more than two windows and a minute: %s", l.TTL, longest)
	}
	return ""
}
