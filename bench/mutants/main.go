// Command mutants is make bar-mutants: it puts small faults into the Lua scripts, one at a time, and demands that each is
// noticed by the tests. A fault that nobody notices is a promise that nobody checks.
//
// Every mutant is run on a real Redis with a movable clock against thousands of single calls, whose replies, stored
// values and times to live must be those of the Go arithmetic; one that survives them, also against storetest.
package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
)

const workers = 2 // each with a Redis of its own

func main() {
	sample := flag.Int("sample", 0, "try only so many mutants, drawn with a fixed seed; 0: all")
	only := flag.String("script", "", "try only mutants of this script")
	b := bar.New("bar-mutants")
	listed, err := readEquivalents()
	if err != nil {
		b.Fatal(err)
	}
	all, err := allMutants(*only)
	if err != nil {
		b.Fatal(err)
	}
	total := len(all)
	if *sample > 0 && *sample < total {
		rng := rand.New(rand.NewPCG(60, 40)) // the same sample each time
		rng.Shuffle(total, func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:*sample]
	}
	program := testredis.Program()
	defer program.Close()
	results, err := tryAll(b, program, all)
	if err != nil {
		b.Fatal(err)
	}
	report(b, results, listed, *sample == 0 && *only == "")
	program.Close() // End may leave the program
	b.End()
}

func allMutants(only string) ([]mutant, error) {
	var all []mutant
	for _, s := range redisstore.Scripts() {
		if only != "" && s.Name != only {
			continue
		}
		list, err := mutants(s)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// result is what became of a mutant.
type result struct {
	mutant
	killer string // differential, storetest, hang; "" if it survived
}

// tryAll hands the mutants out to the workers.
func tryAll(b *bar.Bar, program *testredis.Main, all []mutant) ([]result, error) {
	cases := map[string][]testCase{}
	for _, c := range makeCases() {
		cases[c.script] = append(cases[c.script], c)
	}
	suite, err := buildSuite(program.TempDir())
	if err != nil {
		return nil, err
	}
	beds := make([]*bed, workers)
	for i := range beds {
		if beds[i], err = newBed(program, suite); err != nil {
			return nil, err
		}
	}
	if passes, err := suite.passes(&redisstore.Script{}); err != nil || !passes {
		return nil, fmt.Errorf("storetest fails without any mutant: %w", err)
	}
	for _, s := range redisstore.Scripts() { // what kills the original would kill any mutant
		wrong, err := beds[0].fault(s, cases[s.Name])
		if err != nil || wrong != "" {
			return nil, fmt.Errorf("script %s as it is: %w\n%s", s.Name, err, wrong)
		}
	}
	results, failures := make([]result, len(all)), make([]error, workers)
	next := make(chan int)
	var wg sync.WaitGroup
	for w, bed := range beds {
		wg.Go(func() {
			for i := range next {
				m := all[i]
				killer, err := bed.try(redisstore.NewScript(m.script, m.text), cases[m.script])
				if err != nil {
					failures[w] = fmt.Errorf("%s: %w", m, err)
				}
				results[i] = result{m, killer}
			}
		})
	}
	for i := range all {
		next <- i
		if i%250 == 249 {
			b.Say("%d of %d mutants handed out", i+1, len(all))
		}
	}
	close(next)
	wg.Wait()
	return results, errors.Join(failures...)
}

// try runs a script against everything and tells what noticed a fault, "" for nothing.
func (b *bed) try(script *redisstore.Script, cases []testCase) (killer string, err error) {
	wrong, err := b.fault(script, cases)
	switch {
	case errors.Is(err, errHangs):
		return "hang", b.restart()
	case err != nil:
		return "", err
	case wrong != "":
		return "differential", nil
	}
	if passes, err := b.suite.passes(script); err != nil || !passes {
		return "storetest", err
	}
	return "", nil
}

func report(b *bar.Bar, results []result, listed []*equivalent, complete bool) {
	killers := map[string]int{}
	equivalents, survived, wronglyListed := 0, 0, 0
	for _, r := range results {
		switch e := find(listed, r.mutant); {
		case r.killer != "":
			killers[r.killer]++
			if r.killer == "hang" {
				b.Say("did not answer: %s", r)
			}
			if e != nil {
				b.Say("listed as equivalent, but noticed by %s: %s", r.killer, r)
				wronglyListed++
			}
		case e != nil:
			equivalents++
		default:
			survived++
			b.Say("survived: %s", r)
		}
	}
	if complete {
		for _, e := range listed {
			if len(e.found) < len(e.scripts) {
				b.Say("listed as equivalent, but no mutant of each: %v | %s | %s", e.scripts, e.line, e.change)
				wronglyListed++
			}
		}
	}
	b.Shown("mutants", float64(len(results)))
	b.Shown("killed by the differential", float64(killers["differential"]))
	b.Shown("killed by storetest", float64(killers["storetest"]))
	b.Shown("killed for not answering", float64(killers["hang"]))
	b.Shown("equivalent", float64(equivalents))
	b.Exactly("survived", int64(survived), 0)
	b.Exactly("wrongly listed as equivalent", int64(wronglyListed), 0)
	share := 100 * float64(equivalents) / float64(len(results))
	if complete {
		b.AtMost("equivalent share %", share, 5, 5)
	} else {
		b.Shown("equivalent share %", share) // of a sample it is chance
	}
}

func (r result) String() string { return r.mutant.String() }
