package main

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/internal/apikey"
)

const (
	blocks   = 60
	perBlock = 1700 // of each side: 102,000 samples
	// noticed is the usual bound of leakage tests: beyond it, a difference is no accident.
	noticed = 4.5
	// tells is the share of a refusal's time by which one would have to differ to be seen over a network at all.
	tells = 0.05
)

// verify is a way to check a key.
type verify func(ctx context.Context, text string) bool

// timing compares refusals of keys on record, with a wrong secret, with those of ids on no record. First with a check that forgets the
// hash where there is nothing to compare with.
func timing(ctx context.Context, b *bar.Bar, w *world) {
	ours := func(ctx context.Context, text string) bool {
		_, ok := w.live.Verify(ctx, text)
		return ok
	}
	known := map[string]bool{}
	for _, id := range w.ids {
		known[id] = true
	}
	planted := func(ctx context.Context, text string) bool {
		id, _, ok := apikey.Parse(text)
		if !ok || !known[id] {
			return ok && apikey.Genuine(pepper, id) && false // and no hash
		}
		return ours(ctx, text)
	}
	onRecord, gone, forged := w.refused()
	var asking sync.WaitGroup
	for _, text := range slices.Concat(onRecord, gone) { // from now on they are in memory
		asking.Go(func() { ours(ctx, text) })
	}
	asking.Wait()
	fault := compare(ctx, planted, onRecord, forged)
	b.AtLeast("planted: a refusal on record takes longer, × the other", fault.ratio, 1+2*tells, 1+2*tells)
	b.AtLeast("planted: |t| of Welch's test", fault.t, noticed, noticed)
	for _, c := range []struct {
		name  string
		sides []string
	}{{"never handed out", forged}, {"on record no more", gone}} {
		got := compare(ctx, ours, onRecord, c.sides)
		b.AtMost("ours, "+c.name+": difference as a share of a refusal", math.Abs(got.ratio-1), tells, tells/5)
		b.Shown("ours, "+c.name+": |t| of Welch's test", got.t)
	}
}

// refused returns keys that are refused: with ids on record, handed out and not on record, and never handed out.
func (w *world) refused() (onRecord, gone, forged []string) {
	for _, id := range w.ids {
		text, _ := apikey.Renew(pepper, id)
		onRecord = append(onRecord, text)
		text, _, _ = apikey.New(pepper)
		gone = append(gone, text)
		text, _, _ = apikey.New("another pepper, of somebody who guesses")
		forged = append(forged, text)
	}
	return onRecord, gone, forged
}

// difference is what an observer learns.
type difference struct {
	ratio float64 // the first side's time over the second's: the median over blocks of the medians' ratio
	t     float64 // Welch's, absolute, over the blocks' medians
}

// compare measures both sides in random turns. Each block's median leaves out the pauses of a busy machine, and the median of the blocks'
// ratios leaves out blocks that a neighbour disturbed.
func compare(ctx context.Context, check verify, first, second []string) difference {
	sides := [2][]string{first, second}
	var medians [2][]float64
	var ratios []float64
	for range blocks {
		var times [2][]float64
		for len(times[0]) < perBlock || len(times[1]) < perBlock {
			side := rand.IntN(2)
			text := sides[side][rand.IntN(len(sides[side]))]
			began := time.Now()
			check(ctx, text)
			times[side] = append(times[side], float64(time.Since(began)))
		}
		m := [2]float64{median(times[0]), median(times[1])}
		for side := range m {
			medians[side] = append(medians[side], m[side])
		}
		ratios = append(ratios, m[0]/m[1])
	}
	return difference{ratio: median(ratios), t: welch(medians[0], medians[1])}
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

func welch(a, b []float64) float64 {
	meanA, varA := moments(a)
	meanB, varB := moments(b)
	return math.Abs(meanA-meanB) / math.Sqrt(varA/float64(len(a))+varB/float64(len(b)))
}

func moments(values []float64) (mean, variance float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		variance += (v - mean) * (v - mean) / float64(len(values)-1)
	}
	return mean, variance
}
