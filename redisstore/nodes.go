package redisstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"
)

// Nodes counts the nodes that share a Redis, by heartbeats of their own, so that each knows its share of the limits when
// Redis is gone: hand Count to sluice.Options.Nodes, and Run to whatever runs the program. It is safe for concurrent use.
type Nodes struct {
	conn  Conn
	name  string
	every time.Duration
	count atomic.Int64
}

// nodesKey has a tag, and so a slot, of its own. It carries the format's version like every key.
const nodesKey = "rl1:{nodes}"

// A node beats this often, and is dropped after having been silent for five beats: few enough that a dead one does not
// shrink everybody's share for long, enough that a pause does not double it.
const (
	beatEvery = time.Second
	beatsLost = 5
)

var scriptNodes = NewScript("nodes", source("nodes"))

// NewNodes returns a count of the nodes on a connection, of which this process is one by the name given, made unique.
func NewNodes(conn Conn, name string) *Nodes {
	return &Nodes{conn: conn, name: name + "#" + rand.Text(), every: beatEvery}
}

// Count is the number of nodes alive when Redis last answered, at least 1: this one.
func (n *Nodes) Count() int { return int(max(n.count.Load(), 1)) }

// Run beats until ctx ends, and then leaves, so that the others' shares grow at once. A beat that fails is not reported:
// the count stays as it was, and whoever needs Redis notices.
func (n *Nodes) Run(ctx context.Context) error {
	tick := time.NewTicker(n.every)
	defer tick.Stop()
	_ = n.Beat(ctx)
	for {
		select {
		case <-ctx.Done():
			_ = n.beat(context.WithoutCancel(ctx), "0")
			return nil
		case <-tick.C:
			_ = n.Beat(ctx)
		}
	}
}

// Beat tells the others that this node is alive, and counts them.
func (n *Nodes) Beat(ctx context.Context) error { return n.beat(ctx, "1") }

func (n *Nodes) beat(ctx context.Context, stay string) error {
	ctx, cancel := context.WithTimeout(ctx, n.every)
	defer cancel()
	call := &Call{Script: scriptNodes, Keys: []string{nodesKey}, Args: []string{n.name, strconv.FormatInt((beatsLost * n.every).Milliseconds(), 10), stay}}
	n.conn.Run(ctx, []*Call{call})
	if call.Err != nil {
		return fmt.Errorf("count nodes: %w", call.Err)
	}
	if len(call.Out) != 1 {
		return fmt.Errorf("count nodes: script replied %d integers, want 1", len(call.Out))
	}
	n.count.Store(call.Out[0])
	return nil
}
