package envoyrls

import (
	"math"
	"math/bits"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/sluicehq/sluice"
)

const day = 24 * time.Hour

// unitWindow returns the length of a unit, 0 for one that has none. A month has 30 days and a year 365, as in the reference
// service.
func unitWindow(unit pb.RateLimitResponse_RateLimit_Unit) time.Duration {
	switch unit {
	case pb.RateLimitResponse_RateLimit_SECOND:
		return time.Second
	case pb.RateLimitResponse_RateLimit_MINUTE:
		return time.Minute
	case pb.RateLimitResponse_RateLimit_HOUR:
		return time.Hour
	case pb.RateLimitResponse_RateLimit_DAY:
		return day
	case pb.RateLimitResponse_RateLimit_WEEK:
		return 7 * day
	case pb.RateLimitResponse_RateLimit_MONTH:
		return 30 * day
	case pb.RateLimitResponse_RateLimit_YEAR:
		return 365 * day
	}
	return 0
}

// unitOf returns the unit and how many of it make a window. A window with parts of a second has none that Envoy
// knows.
func unitOf(window time.Duration) (unit pb.RateLimitResponse_RateLimit_Unit, times uint32) {
	switch window {
	case unitWindow(pb.RateLimitResponse_RateLimit_MONTH):
		return pb.RateLimitResponse_RateLimit_MONTH, 1
	case unitWindow(pb.RateLimitResponse_RateLimit_YEAR):
		return pb.RateLimitResponse_RateLimit_YEAR, 1
	}
	// Months and years are counted one at a time only: twelve months would read as a year to some.
	for _, unit := range [...]pb.RateLimitResponse_RateLimit_Unit{
		pb.RateLimitResponse_RateLimit_WEEK, pb.RateLimitResponse_RateLimit_DAY, pb.RateLimitResponse_RateLimit_HOUR,
		pb.RateLimitResponse_RateLimit_MINUTE, pb.RateLimitResponse_RateLimit_SECOND,
	} {
		if length := unitWindow(unit); window >= length && window%length == 0 && window/length <= math.MaxUint32 {
			return unit, uint32(window / length)
		}
	}
	return pb.RateLimitResponse_RateLimit_UNKNOWN, 0
}

// describeLimit fills in a limit as Envoy is told of it. requests_per_unit is what remaining counts down from: for a token bucket
// that is its burst, and the window the time in which it fills, so that both together tell its rate.
func describeLimit(to *pb.RateLimitResponse_RateLimit, l sluice.Limit, label string) {
	to.Name = label
	to.RequestsPerUnit = clamp(l.Capacity())
	setUnit(to, span(l))
}

func setUnit(to *pb.RateLimitResponse_RateLimit, window time.Duration) {
	unit, times := unitOf(window)
	to.Unit = unit
	if times > 1 {
		to.UnitMultiplier = wrapperspb.UInt32(times)
	}
}

// span is the time in which a limit admits its capacity once.
func span(l sluice.Limit) time.Duration {
	if l.Algorithm != sluice.TokenBucket || l.Capacity() == l.Limit {
		return l.Window
	}
	hi, lo := bits.Mul64(uint64(l.Window), uint64(l.Capacity()))
	if hi >= uint64(l.Limit) {
		return math.MaxInt64
	}
	full, rest := bits.Div64(hi, lo, uint64(l.Limit))
	if rest > 0 || full > math.MaxInt64 {
		return math.MaxInt64 // no whole number of units
	}
	return time.Duration(full)
}

func clamp(n int64) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) }
