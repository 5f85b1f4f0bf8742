package redisstore_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/memstore"
	"github.com/sluicehq/sluice/redisstore"
)

// The Go arithmetic and the Lua must agree bit for bit on random traces: in what is replied, in what is stored, and for
// how long. -rapid.checks raises the number of traces.

func TestScripts_ReplyAndStoreWhatTheTwinComputes(t *testing.T) {
	t.Parallel()
	bed := newBed(t)
	rapid.Check(t, func(t *rapid.T) {
		tr := drawTrace(t, true)
		bed.flush(t)
		bed.play(t, tr)
	})
	for _, s := range redisstore.Scripts() {
		if bed.ran[s.Name] == 0 {
			t.Errorf("script %s was never run: the traces do not cover it", s.Name)
		}
	}
	t.Logf("script runs compared: %v", bed.ran)
}

func TestStore_AnswersAsMemstoreDoes(t *testing.T) {
	t.Parallel()
	bed := newBed(t)
	rapid.Check(t, func(t *rapid.T) {
		tr := drawTrace(t, false) // memstore forgets sooner than Redis when the clock steps back
		bed.flush(t)
		bed.playBeside(t, tr)
	})
}

// play runs a trace on Redis and compares every step with the twin.
func (b *differentialBed) play(t *rapid.T, tr randomTrace) {
	t.Helper()
	w := newTwin()
	w.us = tr.start
	latest := tr.start
	var taken []sluice.Charge
	for i, s := range tr.steps {
		w.us = within(w.us+s.pause, tr.start)
		latest = max(latest, w.us)
		b.clock.Freeze(time.UnixMicro(w.us))
		call, want := b.step(t, w, s, &taken)
		if call == nil {
			continue
		}
		b.ran[call.Script.Name]++
		if got := b.replies(call); !slices.Equal(got, want) {
			t.Fatalf("step %d at %d: %v\nscript %s replied %d, want %d", i, w.us, s, call.Script.Name, got, want)
		}
		for _, key := range call.Keys {
			if got, want := b.stored(t, key), w.stored(key); got != want {
				t.Fatalf("step %d at %d: %v\nscript %s left under %s\n%s, want\n%s", i, w.us, s, call.Script.Name, key, got, want)
			}
		}
	}
	b.checkTTL(t, tr, w, latest)
}

// step runs one step on Redis, and on the twin with the keys that were sent. It returns the call and the replies it must
// have had; no call when there was nothing to ask.
func (b *differentialBed) step(t *rapid.T, w *twin, s randomStep, taken *[]sluice.Charge) (*redisstore.Call, []int64) {
	ctx := t.Context()
	b.calls.forget()
	charges := pick(*taken, s.back)
	groups := cloneGroups(s.groups)
	switch s.verb {
	case "take":
		b.store.Take(ctx, groups)
	case "peek":
		b.store.Peek(ctx, groups)
	case "reset":
		b.store.Reset(ctx, groups[0])
	case "give":
		b.store.Give(ctx, charges)
	}
	for _, group := range append(groups, charges) {
		for i := range group {
			if err := group[i].State.Err; err != nil {
				t.Fatalf("%v: charge %d: %v", s, i, err)
			}
		}
	}
	call := b.calls.only(t)
	if call == nil {
		return nil, nil
	}
	switch s.verb {
	case "take":
		want := w.take(groups, call)
		*taken = append(*taken, slices.Concat(groups...)...)
		return call, want
	case "peek":
		return call, w.peek(groups, call)
	case "reset":
		return call, w.reset(call)
	default:
		return call, w.give(charges, call)
	}
}

// playBeside runs a trace on Redis and on a memstore and compares what callers see.
func (b *differentialBed) playBeside(t *rapid.T, tr randomTrace) {
	t.Helper()
	us := tr.start
	memory := memstore.New(memstore.Options{Now: func() time.Time { return time.UnixMicro(us) }})
	var onRedis, inMemory []sluice.Charge
	for i, s := range tr.steps {
		if next := within(us+s.pause, tr.start); next > us {
			us = next
		}
		b.clock.Freeze(time.UnixMicro(us))
		got, want := playStep(t, b.store, s, &onRedis), playStep(t, memory, s, &inMemory)
		for j := range got {
			if g, w := told(got[j].State), told(want[j].State); g != w {
				t.Fatalf("step %d at %d: %v\ncharge %d: got %s, want %s", i, us, s, j, g, w)
			}
		}
	}
}

func playStep(t *rapid.T, store sluice.Store, s randomStep, taken *[]sluice.Charge) []sluice.Charge {
	groups := cloneGroups(s.groups)
	switch s.verb {
	case "take":
		store.Take(t.Context(), groups)
		*taken = append(*taken, slices.Concat(groups...)...)
	case "peek":
		store.Peek(t.Context(), groups)
	case "reset":
		store.Reset(t.Context(), groups[0])
	case "give":
		store.Give(t.Context(), pick(*taken, s.back))
	}
	return slices.Concat(groups...)
}

// told is what a caller reads of a state: all but the store's own time and ids.
func told(s sluice.State) string {
	return fmt.Sprintf("allowed=%v mode=%v remaining=%d reset=%v retry=%v delay=%v receipt=%v err=%v",
		s.Allowed, s.Mode, s.Remaining, s.ResetAfter, s.RetryAfter, s.Delay, s.Receipt != sluice.Receipt{}, s.Err)
}

// within keeps a trace between 2000 and 2100: a clock far outside is no clock, and Redis keeps expiry in it.
func within(us, start int64) int64 {
	if us < 946684800_000000 || us > 4102444800_000000 {
		return start
	}
	return us
}

// pick returns the charges taken that many takes ago.
func pick(taken []sluice.Charge, back []int) []sluice.Charge {
	var list []sluice.Charge
	for _, n := range back {
		if n < len(taken) {
			list = append(list, taken[len(taken)-1-n])
		}
	}
	return list
}

func cloneGroups(groups [][]sluice.Charge) [][]sluice.Charge {
	var list [][]sluice.Charge
	for _, g := range groups {
		list = append(list, slices.Clone(g))
	}
	return list
}

// checkTTL holds every key to invariant C5: it has a time to live, at most two windows (or refills) and a minute.
func (b *differentialBed) checkTTL(t *rapid.T, tr randomTrace, w *twin, latest int64) {
	t.Helper()
	b.clock.Freeze(time.UnixMicro(latest)) // seen from an earlier instant, lives are longer
	var longest time.Duration
	for _, c := range tr.counters {
		for _, v := range c.variants {
			length := v.limit.Window
			if v.limit.Algorithm == sluice.TokenBucket {
				length = time.Duration(float64(v.limit.Window) / float64(v.limit.Limit) * float64(v.limit.Capacity()))
			}
			longest = max(longest, length+v.delay)
		}
	}
	for key := range w.cells {
		left, err := b.look.Do(t.Context(), "PTTL", key).Int64()
		if err != nil {
			t.Fatal(err)
		}
		if most := (2*longest + time.Minute).Milliseconds(); left == -1 || left > most {
			t.Fatalf("key %s lives for %d ms more, want at most %d", key, left, most)
		}
	}
}
