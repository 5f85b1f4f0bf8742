package oracle

import (
	"fmt"

	"github.com/sluicehq/sluice"
)

// model is what a counter is meant to do, written from the definitions (docs/algorithms.md) and from nothing else: it keeps
// every window by its number and every entry by its time, and packs nothing. It never refuses: it tells the room, and
// is told what was charged.
//
// Room is counted in grains, so that no algorithm rounds: a unit is grain() grains. Times are the store's, in µs, and
// never decrease from one call to the next.
type model interface {
	grain() int64
	// room is what is left at t; negative when more was charged than fits.
	room(t int64) int64
	charge(t, units int64)
	// forgive returns a charge of units made at taken, and tells how much came back: units, for token buckets ticks.
	forgive(t, taken, units int64) int64
	// misfit says in words how a value found in the store differs from the model; "" when it does not.
	misfit(found *Leftover) string
}

func newModel(l sluice.Limit) model {
	switch l.Algorithm {
	case sluice.FixedWindow:
		return &fixedModel{windows: newWindows(l)}
	case sluice.SlidingLog:
		return &logModel{limit: l.Limit, window: l.Window.Microseconds()}
	case sluice.TokenBucket:
		return newBucketModel(l)
	default:
		return &slidingModel{windows: newWindows(l)}
	}
}

// windows are the units counted in each window aligned to the Unix epoch.
type windows struct {
	limit   int64
	length  int64 // µs
	tick    int64 // µs; elapsed time is counted in these
	counts  map[int64]int64
	written bool
	last    int64 // the window of the last charge
}

func newWindows(l sluice.Limit) windows {
	w := windows{limit: l.Limit, length: l.Window.Microseconds(), tick: 1000, counts: map[int64]int64{}}
	// A weight is a fraction of the window in whole milliseconds, above a day in whole seconds.
	if l.Window.Hours() > 24 {
		w.tick = 1_000_000
	}
	return w
}

func (w *windows) number(t int64) int64 { return t / w.length }

func (w *windows) charge(t, units int64) {
	w.written, w.last = true, w.number(t)
	w.counts[w.last] += units
}

// take removes units from the window in which they were charged.
func (w *windows) take(taken, units int64) int64 {
	units = min(units, w.counts[w.number(taken)])
	w.counts[w.number(taken)] -= units
	return units
}

// mayBeGone tells whether the value may have expired: it lives for two windows after the first charge of its last
// window, hence at least until the window after next begins.
func (w *windows) mayBeGone(t int64) bool { return !w.written || t >= (w.last+2)*w.length }

func (w *windows) absence(found *Leftover) string {
	if w.mayBeGone(found.ReadAt) {
		return ""
	}
	return fmt.Sprintf("nothing is stored, but %d units were charged in the window that began at %d", w.counts[w.last], w.last*w.length)
}

// fixedModel: at most limit in each window.
type fixedModel struct{ windows }

func (m *fixedModel) grain() int64       { return 1 }
func (m *fixedModel) room(t int64) int64 { return m.limit - m.counts[m.number(t)] }

// forgive: a window that is over no longer counts, so nothing comes back.
func (m *fixedModel) forgive(t, taken, units int64) int64 {
	if m.number(t) != m.number(taken) {
		return 0
	}
	return m.take(taken, units)
}

// misfit reads (window mod 8)·2^50 + count.
func (m *fixedModel) misfit(found *Leftover) string {
	if !found.Present {
		return m.absence(found)
	}
	number, count := found.Value>>50, found.Value&(1<<50-1)
	if !m.written || number != m.last%8 || count != m.counts[m.last] {
		return fmt.Sprintf("stored is a count of %d in window %d (mod 8), want %d in window %d", count, number, m.counts[m.last], m.last%8)
	}
	return ""
}

// slidingModel: this window's count and the previous one's, weighted by what is left of this window, fit the limit.
type slidingModel struct{ windows }

// grain is the window's length in ticks: the weighted count is then a whole number of grains.
func (m *slidingModel) grain() int64 { return m.length / m.tick }

func (m *slidingModel) room(t int64) int64 {
	now := m.number(t)
	elapsed := (t - now*m.length) / m.tick
	return (m.limit-m.counts[now])*m.grain() - m.counts[now-1]*(m.grain()-elapsed)
}

// forgive: a window counts while it is the current or the previous one.
func (m *slidingModel) forgive(t, taken, units int64) int64 {
	if m.number(t)-m.number(taken) > 1 {
		return 0
	}
	return m.take(taken, units)
}

// misfit reads (window mod 8)·2^50 + previous count·2^25 + current count.
func (m *slidingModel) misfit(found *Leftover) string {
	if !found.Present {
		return m.absence(found)
	}
	number, prev, cur := found.Value>>50, found.Value>>25&(1<<25-1), found.Value&(1<<25-1)
	if !m.written || number != m.last%8 || prev != m.counts[m.last-1] || cur != m.counts[m.last] {
		return fmt.Sprintf("stored are %d after %d in window %d (mod 8), want %d after %d in window %d",
			cur, prev, number, m.counts[m.last], m.counts[m.last-1], m.last%8)
	}
	return ""
}
