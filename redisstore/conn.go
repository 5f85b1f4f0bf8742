package redisstore

import "context"

// Conn is what the store asks of a Redis client. The packages rueidisconn and goredisconn adapt the two clients most
// people use.
type Conn interface {
	// Run sends all calls at once and fills Out or Err of each before it returns. A script the server does not know
	// is sent as text, once. Nothing else is ever sent twice: a call whose reply was lost may have been applied.
	//
	// Run neither keeps nor changes a call's slices after it returns without error. After an error the client may
	// still hold them, so the store abandons them.
	Run(ctx context.Context, calls []*Call)

	// Sharded tells that keys live on several masters, so that one script may only touch keys of one hash slot.
	Sharded() bool
}

// Sharder is a sharded Conn that knows its shards. With it callers whose counters lie on one shard send their calls
// together. A wrong answer, while slots move, costs time and nothing else.
type Sharder interface {
	// ShardOf returns the number of the shard that holds a key.
	ShardOf(key string) int
}

// Call is one run of a script. The store owns calls and reuses them.
type Call struct {
	Script *Script
	Keys   []string
	Args   []string
	// Out receives the reply's integers, appended; an integer reply is one element.
	Out []int64
	Err error
}
