package control

import (
	"context"
	"encoding/json"
	"time"

	"github.com/redis/rueidis"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/registry"
)

func (b *redisBus) beat(ctx context.Context, node, text string) error {
	return b.with(ctx, callTimeout, func(ctx context.Context, c rueidis.Client) error {
		for _, r := range c.DoMulti(ctx,
			c.B().Hset().Key(nodesKey).FieldValue().FieldValue(node, text).Build(),
			c.B().Pexpire().Key(nodesKey).Milliseconds(keepFor.Milliseconds()).Build(),
		) {
			if err := r.Error(); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *redisBus) beats(ctx context.Context) (all map[string]string, err error) {
	err = b.with(ctx, callTimeout, func(ctx context.Context, c rueidis.Client) error {
		all, err = c.Do(ctx, c.B().Hgetall().Key(nodesKey).Build()).AsStrMap()
		return err
	})
	return all, err
}

func (b *redisBus) forget(ctx context.Context, nodes []string) error {
	return b.with(ctx, callTimeout, func(ctx context.Context, c rueidis.Client) error {
		return c.Do(ctx, c.B().Hdel().Key(nodesKey).Field(nodes...).Build()).Error()
	})
}

// pulse is what a node tells of itself. Number rises with every beat, so that whoever looks twice knows that the node is alive, without
// comparing clocks of two machines.
type pulse struct {
	Revision sluice.Revision `json:"revision"`
	Version  string          `json:"version"`
	Number   int64           `json:"number"`
}

// beatEvery is how often a node tells which revision it serves.
const beatEvery = time.Second

// runBeats tells the others until ctx ends. A beat that fails is not reported: whoever needs Redis notices.
func (p *Plane) runBeats(ctx context.Context) {
	for n := int64(1); ctx.Err() == nil; n++ {
		text, _ := json.Marshal(pulse{Revision: p.serving(), Version: p.opts.Version, Number: n}) // always can be
		p.unheard.Store(p.bus.beat(ctx, p.opts.Node, string(text)) != nil)
		_ = sleep(ctx, beatEvery)
	}
}

// runDirectBeats tells the database itself, as rarely as it is looked at, while no relay can: Redis does not take beats. And so it does
// while the database is away from this node, who would else not know when it is back: what others relay comes all the same.
func (p *Plane) runDirectBeats(ctx context.Context) {
	for sleep(ctx, jitter(directEvery)) == nil {
		if p.unheard.Load() || p.db.away() {
			bound, cancel := context.WithTimeout(ctx, revisionTimeout)
			_ = p.db.Heartbeat(bound, []registry.Node{{Name: p.opts.Node, Revision: p.serving(), Version: p.opts.Version}})
			cancel()
		}
	}
}

// census turns beats into nodes that are alive.
type census struct {
	last   map[string]string
	silent map[string]int // looks in a row at which a node had nothing new
}

// silentLooks is after how many looks without a beat a node is forgotten, ten minutes of them.
const silentLooks = int(10 * time.Minute / pollEvery)

// look returns the nodes that have beaten since the last look, and those that are long gone.
func (c *census) look(beats map[string]string) (alive []registry.Node, gone []string) {
	first := c.last == nil // whoever is dead looks alive at the first look
	silent := map[string]int{}
	for name, text := range beats {
		if c.last[name] == text {
			silent[name] = c.silent[name] + 1
			if silent[name] >= silentLooks {
				gone = append(gone, name)
			}
			continue
		}
		var p pulse
		if json.Unmarshal([]byte(text), &p) == nil && !first {
			alive = append(alive, registry.Node{Name: name, Revision: p.Revision, Version: p.Version})
		}
	}
	c.last, c.silent = beats, silent
	return alive, gone
}
