// Command exact is make bar-exact: it holds the store on Redis to its first promise, that nothing is ever admitted
// beyond a limit, and to the second, that nothing within the limits is refused. Four processes decide a million
// requests on a single Redis and on a Cluster; the oracle then judges every answer and every value left behind. Last,
// faults are planted, each of which the oracle must find: a bar that cannot fail would prove nothing.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/internal/oracle"
	"github.com/sluicehq/sluice/internal/oracle/workload"
	"github.com/sluicehq/sluice/internal/testredis"
)

const (
	goal         = 1_000_000 // decisions, on both together
	onSingle     = 650_000
	onCluster    = goal - onSingle
	perPlant     = 15_000
	leastRefused = 30 // percent, in each algorithm on each topology
	mostRefused  = 70
)

func main() {
	part := flag.String("worker", "", "one process's part of a run as JSON; the bar starts its own workers with it")
	scale := flag.Float64("scale", 1, "how many decisions, as a multiple of the bar's; below 1 the bar is missed")
	b := bar.New("bar-exact")
	if *part != "" {
		if err := work(context.Background(), *part); err != nil {
			b.Fatal(err)
		}
		return
	}
	started := time.Now()
	program := testredis.Program()
	fail := func(err error) {
		program.Close()
		b.Fatal(err)
	}
	b.Say("starting a single Redis and a Cluster of three masters")
	single, cluster := newSingle(program), newCluster(program)

	var reports []*oracle.Report
	for _, stage := range []struct {
		on        *topology
		decisions float64
	}{{single, onSingle}, {cluster, onCluster}} {
		report, err := stage.on.run(int(stage.decisions**scale), nil)
		if err != nil {
			fail(err)
		}
		b.Say("%s: %s", stage.on.name, report)
		show(b, stage.on.name, report)
		reports = append(reports, report)
	}
	judge(b, reports)

	found, plants := 0, workload.Plants()
	for _, plant := range plants {
		on := single
		if plant.Cluster {
			on = cluster
		}
		report, err := on.run(perPlant, plant)
		if err != nil {
			fail(err)
		}
		b.Say("planted: %s: %d findings of kind %q; %d units over-admitted", plant.Name, report.Counts[plant.Sign], plant.Sign, report.OverUnits())
		if report.Counts[plant.Sign] > 0 {
			found++
		}
	}
	b.Exactly("planted faults reported", int64(found), int64(len(plants)))
	b.Shown("seconds in all", time.Since(started).Seconds())
	program.Close()
	b.End()
}

// show records the figures of one topology that have no goal.
func show(b *bar.Bar, name string, r *oracle.Report) {
	for a, share := range r.Algorithms {
		b.Shown(fmt.Sprintf("%s: %% of %s charges refused", name, sluice.Algorithm(a)), share.Percent())
	}
	explained := 0
	for _, n := range r.Explained {
		explained += n
	}
	b.Shown(name+": decisions", float64(r.Decisions))
	b.Shown(name+": of them across slots", float64(r.AcrossShards))
	b.Shown(name+": charges", float64(r.Charges))
	b.Shown(name+": give-backs", float64(r.Givebacks))
	b.Shown(name+": refusals explained by give-backs", float64(explained))
	b.Shown(name+": of them in groups within one slot", float64(r.ExplainedOneShard))
	b.Shown(name+": most units a bucket lost by give-backs", r.Loss.Units)
	b.Shown(name+": counters with a value left", float64(r.LeftoverValues))
	b.Shown(name+": most charges of a counter in one µs", float64(r.WidestTie))
}

// judge records the figures that decide.
func judge(b *bar.Bar, reports []*oracle.Report) {
	var decisions, over, leftovers, wrong int64
	var counts [oracle.Kinds]int64
	least, most := 100.0, 0.0
	for _, r := range reports {
		decisions += int64(r.Decisions)
		over += r.OverUnits()
		leftovers += int64(r.Leftovers)
		for k, n := range r.Counts {
			counts[k] += int64(n)
		}
		for _, share := range r.Algorithms {
			least, most = min(least, share.Percent()), max(most, share.Percent())
		}
		for _, f := range r.Findings() {
			fmt.Fprintln(os.Stderr, f)
		}
	}
	for _, n := range counts {
		wrong += n
	}
	named := []oracle.Kind{oracle.FalselyRefused, oracle.WrongLeftover, oracle.Unknown}
	for _, k := range append(named, oracle.OverAdmitted) {
		wrong -= counts[k]
	}
	b.AtLeast("decisions", float64(decisions), goal, goal)
	b.Exactly("units over-admitted", over, 0)
	for _, k := range named {
		b.Exactly(k.String()+"s", counts[k], 0)
	}
	b.Exactly("other answers that differ from the model", wrong, 0)
	b.Exactly("counters whose value in Redis was compared", leftovers, int64(len(reports)*workload.Counters))
	b.AtLeast("least % refused of an algorithm", least, leastRefused, leastRefused)
	b.AtMost("most % refused of an algorithm", most, mostRefused, mostRefused)
}
