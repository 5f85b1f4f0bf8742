package oracle

import (
	"fmt"
	"math/big"

	"github.com/sluicehq/sluice"
)

// A store cannot keep a unit's refill time as a fraction. It is documented (docs/algorithms.md) to round it up, once, to
// whole ticks: J = ceil(window·ticks/limit), and to charge c·J. Two models follow from that.
//
//   - exactBucket knows nothing of ticks: it is the definition, in fractions, and tells over-admission. Rounding up
//     makes a store slower than that, never faster.
//   - bucketModel counts in ticks of that documented length. It tells what each verdict must be, to the tick.

// The tick lengths, per µs, and the longest debt that the finer one is used for: a quarter of a ring of 2^53 ticks.
const (
	fineTicks  = 8192
	longTicks  = 8
	ringTicks  = 1 << 53
	finestDebt = ringTicks / 4
)

// bucketModel: the debt falls by a tick per tick of time and must not exceed burst·J.
type bucketModel struct {
	capacity int64 // ticks
	unit     int64 // J: ticks that one unit takes to refill
	perMicro int64
	written  bool
	at       int64 // µs; when debt was debt
	debt     int64 // ticks
}

func newBucketModel(l sluice.Limit) *bucketModel {
	m := &bucketModel{perMicro: fineTicks}
	m.unit = ceilDiv(l.Window.Microseconds(), fineTicks, l.Limit)
	// Compared as a quotient: the product may not fit.
	if l.Capacity() > finestDebt/m.unit {
		m.perMicro = longTicks
		m.unit = ceilDiv(l.Window.Microseconds(), longTicks, l.Limit)
	}
	m.capacity = l.Capacity() * m.unit
	return m
}

// ceilDiv returns a·b/c, rounded up.
func ceilDiv(a, b, c int64) int64 {
	n := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
	n.Add(n, big.NewInt(c-1))
	return n.Quo(n, big.NewInt(c)).Int64()
}

func (m *bucketModel) grain() int64       { return m.unit }
func (m *bucketModel) room(t int64) int64 { return m.capacity - m.owed(t) }

// owed is the debt at t.
func (m *bucketModel) owed(t int64) int64 {
	// After as long as the whole debt takes nothing is left; asked first, because the product below may not fit.
	if (t - m.at) >= m.debt/m.perMicro+1 {
		return 0
	}
	return max(0, m.debt-(t-m.at)*m.perMicro)
}

func (m *bucketModel) charge(t, units int64) {
	m.debt, m.at, m.written = m.owed(t)+units*m.unit, t, true
}

// forgive returns the charge less the time since it was made: what would have been refilled meanwhile is not returned,
// because a bucket that was full meanwhile would then hold more than if nothing had ever been taken.
func (m *bucketModel) forgive(t, taken, units int64) int64 {
	back := min(units*m.unit-(t-taken)*m.perMicro, m.owed(t))
	if back <= 0 {
		return 0
	}
	m.debt, m.at = m.owed(t)-back, t
	return back
}

// misfit reads the time at which the bucket is full, in ticks on a ring of 2^53; in long ticks stored as -1-ticks.
func (m *bucketModel) misfit(found *Leftover) string {
	if !found.Present {
		if owed := m.owed(found.ReadAt); owed > 0 {
			return fmt.Sprintf("nothing is stored, but %d ticks of debt are left", owed)
		}
		return ""
	}
	full := new(big.Int).Mul(big.NewInt(m.at), big.NewInt(m.perMicro))
	full.Add(full, big.NewInt(m.debt))
	want := full.Mod(full, big.NewInt(ringTicks)).Int64()
	if m.perMicro == longTicks {
		want = -1 - want
	}
	if !m.written || found.Value != want {
		return fmt.Sprintf("stored is %d, want %d: %d ticks apart", found.Value, want, found.Value-want)
	}
	return ""
}

// exactBucket is the definition: in any interval (s, t] at most burst + rate·(t-s) units. The rate is limit/window, so
// everything is kept as multiples of 1/window, whole numbers without bound.
type exactBucket struct {
	limit, window, capacity *big.Int
	at                      int64
	debt                    *big.Int // units·window
}

func newExactBucket(l sluice.Limit) *exactBucket {
	window := big.NewInt(l.Window.Microseconds())
	return &exactBucket{
		limit:    big.NewInt(l.Limit),
		window:   window,
		capacity: new(big.Int).Mul(big.NewInt(l.Capacity()), window),
		debt:     new(big.Int),
	}
}

// admit adds units at t and returns by how many, rounded up, some interval ending at t holds too many. The largest
// excess over all beginnings s is kept in one number, which falls at the rate and never below zero.
func (b *exactBucket) admit(t, units int64) (over int64) {
	refill := new(big.Int).Mul(b.limit, big.NewInt(t-b.at))
	if b.debt.Sub(b.debt, refill).Sign() < 0 {
		b.debt.SetInt64(0)
	}
	b.at = t
	b.debt.Add(b.debt, new(big.Int).Mul(big.NewInt(units), b.window))
	excess := new(big.Int).Sub(b.debt, b.capacity)
	if excess.Sign() <= 0 {
		return 0
	}
	excess.Add(excess, b.window)
	excess.Sub(excess, big.NewInt(1))
	return excess.Quo(excess, b.window).Int64()
}
