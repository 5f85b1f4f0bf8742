// Package workload puts a store under the load that bar-exact and its short form in CI judge by the oracle: few hot and
// many cold counters of every algorithm, mixed costs, several limits at once, within one slot and across slots, and
// about half of everything refused.
package workload

import (
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
)

// The counters: of each user one per algorithm. A user's counters share a slot, those of different users rarely do.
const (
	users     = 50
	perUser   = 4
	Counters  = users * perUser
	HotOnes   = 10   // the first ones
	hotShare  = 0.5  // of all picks go to the hot ones
	MaxCost   = 100  // also the largest a sliding log takes
	coldRatio = 20   // a hot counter admits that many times more than a cold one
	longSpan  = 20.0 // seconds of admission that a long window's limit is good for, so that it is spent within the run
)

// windowsOf users take turns. The short ones turn many times in a run; the long ones end with the run half spent, and
// what is left in Redis can be compared. 48 h is counted in seconds, not milliseconds.
var windowsOf = [...]time.Duration{200 * time.Millisecond, time.Second, 5 * time.Second, 300 * time.Millisecond, time.Hour, 48 * time.Hour}

// chargesOf returns one charge for each counter, without a cost. name keeps runs on one Redis apart; rate is the units
// per second that a hot counter admits.
func chargesOf(name string, rate int64) []sluice.Charge {
	charges := make([]sluice.Charge, 0, Counters)
	for user := range users {
		for a := range perUser {
			algorithm := algorithmOf(user, a)
			r := rate
			if len(charges) >= HotOnes {
				r = max(rate/coldRatio, 1)
			}
			charges = append(charges, sluice.Charge{
				Key: sluice.Key{
					Namespace: name,
					Rule:      algorithm.String(),
					Parts:     []sluice.Part{{Dimension: sluice.User, Value: fmt.Sprintf("user-%d", user)}},
				},
				Limit: limitOf(algorithm, user, r),
			})
		}
	}
	return charges
}

// algorithmOf shifts the order from user to user: were it fixed, the third hot user, of whom only two counters are
// hot, would never have a hot bucket.
func algorithmOf(user, a int) sluice.Algorithm { return sluice.Algorithm((user + a) % perUser) }

// limitOf returns a limit that admits about rate units per second. Nothing is round: a unit's refill time is then no
// whole number of ticks, and a window's weight no whole number of units.
func limitOf(algorithm sluice.Algorithm, user int, rate int64) sluice.Limit {
	window := windowsOf[user%len(windowsOf)]
	span := min(window.Seconds(), longSpan)
	units := int64(float64(rate)*span) + int64(user)
	l := sluice.Limit{Algorithm: algorithm, Limit: max(units, 1), Window: window}
	switch algorithm {
	case sluice.SlidingLog:
		l.Limit = min(l.Limit, sluice.MaxLogLimit)
	case sluice.TokenBucket:
		l.Burst = max(units, MaxCost/2) // some costs never pass
		if span < longSpan {
			l.Limit, l.Window = rate+int64(user), 997*time.Millisecond
		} else { // hardly refills: a long bucket, which is stored in coarse ticks
			l.Limit, l.Window = 101, 24*time.Hour
		}
	}
	return l
}
