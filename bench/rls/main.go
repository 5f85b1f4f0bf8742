// Command rls is make bar-rls: it asks the reference service of Envoy's rate limit API and ours the same random calls, by the
// same configurations, which ours gets through the importer. At an addend of 1 every answer must be equal. At larger ones
// every difference must be the documented one, that the reference charges calls it refuses; a model of both checks
// that. Last, our rules are mutated, and the comparison must notice.
package main

import (
	"context"
	"flag"
	"math/rand/v2"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/bench/internal/reference"
	"github.com/sluicehq/sluice/internal/testredis"
)

const (
	leastConfigs = 20
	leastCalls   = 500 // for each configuration
	madeUp       = 24
)

func main() {
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "repeats a run's configurations and calls")
	calls := flag.Int("calls", leastCalls, "calls for each configuration; below 500 the bar is missed")
	b := bar.New("bar-rls")
	program := testredis.Program()
	r := &run{b: b, seed: *seed, calls: *calls}
	if err := r.all(program); err != nil {
		program.Close()
		b.Fatal(err)
	}
	program.Close()
	r.end()
	b.End()
}

// run is one run and its figures.
type run struct {
	b       *bar.Bar
	seed    uint64
	calls   int
	configs []config
	sides   *sides
	tally
}

// tally is what was counted.
type tally struct {
	asked, straddled             int
	descriptors, limited, over   int
	different, wrong, explained  int
	costly                       int
	plants, noticed, fewestCalls int
}

func (r *run) all(program *testredis.Main) error {
	ctx := context.Background()
	r.b.Say("seed %d; building the reference service", r.seed)
	binary, err := reference.Build(ctx)
	if err != nil {
		return err
	}
	if r.configs, err = handwritten(); err != nil {
		return err
	}
	m := &maker{Rand: rand.New(rand.NewPCG(r.seed, 1))}
	for n := range madeUp {
		m.shares = n%2 == 0
		c, err := m.config(n + 1)
		if err != nil {
			return err
		}
		r.configs = append(r.configs, c)
	}
	if r.sides, err = newSides(program, binary, r.configs); err != nil {
		return err
	}
	r.b.Say("%d configurations, %d rules, %d notes of the importer", len(r.configs), r.sides.limiter.Rules().Len(), r.sides.notes)
	for i := range r.configs {
		if err := r.compare(ctx, i); err != nil {
			return err
		}
		if err := r.model(ctx, i); err != nil {
			return err
		}
	}
	return r.plant(ctx)
}

// compare asks both sides calls with an addend of 1.
func (r *run) compare(ctx context.Context, i int) error {
	c := caller{rand.New(rand.NewPCG(r.seed, uint64(100+i))), &r.configs[i].tree}
	asked := 0
	for ; asked < r.calls; asked++ {
		req := c.call()
		p, err := r.ask(ctx, req)
		if err != nil {
			return err
		}
		r.count(p)
		if found := differences(p); len(found) > 0 {
			if r.different++; r.different <= 10 {
				r.b.Say("%s: call %v: %q", r.configs[i].file, req, found)
			}
		}
	}
	if i == 0 || asked < r.fewestCalls {
		r.fewestCalls = asked
	}
	return nil
}

// model asks both sides calls with larger addends.
func (r *run) model(ctx context.Context, i int) error {
	if sharing(r.configs[i].Descriptors) {
		return nil // the model counts by descriptor
	}
	c := caller{rand.New(rand.NewPCG(r.seed, uint64(1000+i))), &r.configs[i].tree}
	if err := r.sides.empty(); err != nil {
		return err
	}
	m := newModel()
	for range r.calls {
		req := c.call()
		c.costly(req)
		straddled := r.straddled
		p, err := r.ask(ctx, req)
		if err != nil {
			return err
		}
		if r.straddled > straddled {
			m = newModel() // both were emptied
		}
		r.costly++
		wrong, explained := m.judge(req, p)
		r.explained += explained
		if len(wrong) > 0 {
			if r.wrong++; r.wrong <= 10 {
				r.b.Say("%s: call %v: %q", r.configs[i].file, req, wrong)
			}
		}
	}
	return nil
}

// ask repeats a call until it lies within one second.
func (r *run) ask(ctx context.Context, req *pb.RateLimitRequest) (pair, error) {
	for {
		r.asked++
		p, ok, err := r.sides.ask(ctx, req)
		if ok || err != nil {
			return p, err
		}
		r.straddled++
	}
}

func (r *run) count(p pair) {
	for _, s := range p.theirs.GetStatuses() {
		r.descriptors++
		if s.GetCurrentLimit() != nil {
			r.limited++
		}
		if s.GetCode() == pb.RateLimitResponse_OVER_LIMIT {
			r.over++
		}
	}
}

// end records the figures.
func (r *run) end() {
	b := r.b
	b.AtLeast("configurations", float64(len(r.configs)), leastConfigs, leastConfigs)
	b.AtLeast("fewest calls of one with an addend of 1", float64(r.fewestCalls), leastCalls, leastCalls)
	b.Exactly("calls that differ at an addend of 1", int64(r.different), 0)
	b.Shown("descriptors compared", float64(r.descriptors))
	b.AtLeast("% of them limited", 100*float64(r.limited)/float64(r.descriptors), 40, 40)
	b.AtLeast("% of them over a limit", 100*float64(r.over)/float64(r.descriptors), 15, 15)
	b.Shown("calls with larger addends", float64(r.costly))
	b.AtLeast("differences at larger addends that are the documented one", float64(r.explained), 1, 1)
	b.Exactly("other differences at larger addends", int64(r.wrong), 0)
	b.AtMost("% of calls repeated at a window's edge", 100*float64(r.straddled)/float64(r.asked), 1, 1)
	b.Exactly("mutations of our rules noticed", int64(r.noticed), int64(r.plants))
}
