package workload

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/oracle"
	"github.com/sluicehq/sluice/internal/oracle/witness"
	"github.com/sluicehq/sluice/redisstore"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

// Config is one process's part of a run. All fields but Plant are required.
type Config struct {
	// Name keeps runs on one Redis apart.
	Name    string
	Redis   rueidisconn.Options
	Process uint32
	// Goroutines ask at the same time, together as often as Decisions says.
	Goroutines, Decisions int
	// Rate is the units per second that a hot counter admits.
	Rate int64
	// Plant is the fault to plant between store and Redis. Default: none.
	Plant *Plant
}

// Counters returns the counters of the run, which are the same for all its processes.
func (cfg *Config) Counters() []oracle.Counter {
	return witness.Counters(chargesOf(cfg.Name, cfg.Rate), cfg.Redis.Cluster)
}

// patience bounds a call. It is long, so that a busy machine loses no reply: a lost one would be a gap in the log.
const patience = 5 * time.Second

// Run makes the decisions and writes the log of them.
func Run(ctx context.Context, cfg Config, out io.Writer) error {
	counters := cfg.Counters()
	log, err := oracle.NewWriter(out, cfg.Process, counters)
	if err != nil {
		return err
	}
	client, err := rueidisconn.New(cfg.Redis)
	if err != nil {
		return err
	}
	defer client.Close()
	var conn redisstore.Conn = client
	if cfg.Plant != nil {
		if conn, err = cfg.Plant.into(client); err != nil {
			return err
		}
	}
	conn, err = witness.NewConn(conn, log, counters)
	if err != nil {
		return err
	}
	// On a Cluster every other process shares pipelines. There the scripts for a single limit could not hand their time
	// to the caller they answer, so such a process asks for receipts always.
	pipelined := cfg.Redis.Cluster && cfg.Process%2 == 1
	if pipelined {
		conn = sharingConn{conn, client}
	}
	d := &driver{
		witness:  witness.New(redisstore.New(conn, redisstore.Options{}), log),
		charges:  chargesOf(cfg.Name, cfg.Rate),
		receipts: pipelined,
	}
	d.left.Store(int64(cfg.Decisions))
	for i := range d.largest {
		d.largest[i].Store(startCost * costScale)
	}
	var wg sync.WaitGroup
	for g := range cfg.Goroutines {
		// Seeded by its place, so that a run asks the same whatever the machine; what it is told differs.
		rng := rand.New(rand.NewPCG(uint64(cfg.Process), uint64(g)))
		wg.Go(func() { d.drive(ctx, rng) })
	}
	wg.Wait()
	if err := log.Close(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("the run was cut short: %w", context.Cause(ctx))
	}
	return nil
}

// sharingConn is a connection that knows its shards.
type sharingConn struct {
	redisstore.Conn
	redisstore.Sharder
}

// driver asks.
type driver struct {
	witness  *witness.Witness
	charges  []sluice.Charge
	receipts bool         // for every charge
	left     atomic.Int64 // decisions
	// largest is the cost up to which most charges of an algorithm go, times costScale. It falls with each refusal and
	// rises with each pass, and so settles where half are refused, however fast the machine is.
	largest [perUser]atomic.Int64
}

const (
	costScale = 1000
	startCost = 10
	// costStep is the fraction by which one answer moves the largest cost. Faster follows single windows, slower does
	// not settle within a short run.
	costStep = 500
	anyCost  = 0.02 // of the charges cost anything up to MaxCost, so that large ones never die out
)

func (d *driver) drive(ctx context.Context, rng *rand.Rand) {
	group, of := make([]sluice.Charge, 0, perUser), make([]int, 0, perUser)
	for d.left.Add(-1) >= 0 && ctx.Err() == nil {
		group, of = d.pickGroup(rng, group[:0], of[:0])
		d.take(ctx, group, of)
		for i := range group {
			d.learn(&group[i])
		}
	}
}

func (d *driver) take(ctx context.Context, group []sluice.Charge, of []int) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	d.witness.Take(ctx, group, of)
}

// pickGroup makes half of all groups of one charge, a quarter of two to four of one user, a quarter of two to four of
// any users.
func (d *driver) pickGroup(rng *rand.Rand, group []sluice.Charge, of []int) ([]sluice.Charge, []int) {
	n, oneUser := 1, false
	if rng.IntN(2) == 0 {
		n, oneUser = 2+rng.IntN(3), rng.IntN(2) == 0
	}
	for len(of) < n {
		i := pick(rng)
		if oneUser && len(of) > 0 {
			i = of[0]/perUser*perUser + rng.IntN(perUser)
		}
		if slices.Contains(of, i) {
			continue // one request must not charge a counter twice
		}
		c := d.charges[i]
		c.Cost = d.cost(rng, c.Limit.Algorithm)
		c.Receipted = d.receipts || rng.IntN(2) == 0 // decides which script answers a lone charge
		group, of = append(group, c), append(of, i)
	}
	return group, of
}

func pick(rng *rand.Rand) int {
	if rng.Float64() < hotShare {
		return rng.IntN(HotOnes)
	}
	return rng.IntN(Counters)
}

func (d *driver) cost(rng *rand.Rand, a sluice.Algorithm) int64 {
	if rng.Float64() < anyCost {
		return 1 + rng.Int64N(MaxCost)
	}
	return 1 + rng.Int64N(d.largest[a].Load()/costScale)
}

// learn moves the largest cost by one answer. Two at once may overwrite each other, which does not matter.
func (d *driver) learn(c *sluice.Charge) {
	largest := &d.largest[c.Limit.Algorithm]
	n := largest.Load()
	step := max(n/costStep, 1)
	if !c.State.Allowed {
		step = -step
	}
	largest.Store(min(max(n+step, costScale), MaxCost*costScale))
}
