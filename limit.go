package sluice

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/internal/algo"
)

// Algorithm is the way a limit counts. The zero value is SlidingWindow.
type Algorithm uint8

// The algorithms. docs/algorithms.md draws what each admits.
const (
	// SlidingWindow weights the previous window's count by what is left of it and adds this window's.
	SlidingWindow Algorithm = iota
	// FixedWindow admits at most Limit units in each window aligned to the Unix epoch.
	FixedWindow
	// SlidingLog admits at most Limit units in any interval as long as Window, exactly.
	// It remembers every unit, so it is capped at MaxLogLimit and MaxLogCost.
	SlidingLog
	// TokenBucket refills Limit units per Window evenly and holds at most Burst.
	TokenBucket
)

var algorithmNames = [...]string{"sliding_window", "fixed_window", "sliding_log", "token_bucket"}

// String returns the name used in rule files, such as "token_bucket".
func (a Algorithm) String() string {
	if int(a) < len(algorithmNames) {
		return algorithmNames[a]
	}
	return fmt.Sprintf("Algorithm(%d)", a)
}

// MarshalText writes the name used in rule files.
func (a Algorithm) MarshalText() ([]byte, error) {
	if int(a) >= len(algorithmNames) {
		return nil, fmt.Errorf("unknown algorithm %d", a)
	}
	return []byte(algorithmNames[a]), nil
}

// UnmarshalText reads a name used in rule files; the empty text is SlidingWindow.
func (a *Algorithm) UnmarshalText(text []byte) error {
	i, err := parseName(string(text), algorithmNames[:], "algorithm")
	*a = Algorithm(i)
	return err
}

// The bounds of a limit. Validate names the alternative when one is exceeded.
const (
	MinWindow        = 100 * time.Millisecond
	MaxWindow        = 366 * 24 * time.Hour
	MaxWindowedLimit = algo.MaxSlidingLimit // sliding window: two counts and a window number share one exact float
	MaxFixedLimit    = algo.MaxFixedLimit
	MaxLogLimit      = algo.MaxLogLimit
	MaxLogCost       = algo.MaxLogCost
	MaxBucketRate    = 5_000_000 // units per second: beyond it one unit refills within the store's clock tick
)

// Limit is an algorithm and its numbers: at most Limit units per Window.
// The zero value is not a limit; write PerMinute(100) or a literal.
type Limit struct {
	Algorithm Algorithm
	// Limit is the number of units a Window admits; for a token bucket, the units it refills per Window.
	Limit int64
	// Window is from 100 ms to 366 days, in whole milliseconds (whole seconds above 24 h).
	Window time.Duration
	// Burst is the token bucket's capacity. Default: Limit. Other algorithms have none.
	Burst int64
}

// PerSecond admits n units in any sliding second.
func PerSecond(n int64) Limit { return Per(n, time.Second) }

// PerMinute admits n units in any sliding minute.
func PerMinute(n int64) Limit { return Per(n, time.Minute) }

// PerHour admits n units in any sliding hour.
func PerHour(n int64) Limit { return Per(n, time.Hour) }

// PerDay admits n units in any sliding day.
func PerDay(n int64) Limit { return Per(n, 24*time.Hour) }

// Per admits n units per window, by a sliding window.
func Per(n int64, window time.Duration) Limit { return Limit{Limit: n, Window: window} }

// Bucket refills n units per window evenly and holds at most burst.
func Bucket(n int64, window time.Duration, burst int64) Limit {
	return Limit{Algorithm: TokenBucket, Limit: n, Window: window, Burst: burst}
}

// Capacity is the largest cost the limit can ever admit.
func (l Limit) Capacity() int64 {
	if l.Algorithm == TokenBucket && l.Burst > 0 {
		return l.Burst
	}
	return l.Limit
}

// String describes the limit for people: "100 per 1m0s (sliding_window)".
func (l Limit) String() string {
	if l.Algorithm == TokenBucket {
		return fmt.Sprintf("%d per %s (token_bucket, burst %d)", l.Limit, l.Window, l.Capacity())
	}
	return fmt.Sprintf("%d per %s (%s)", l.Limit, l.Window, l.Algorithm)
}

// Validate reports every fault of the limit at once, or nil.
func (l Limit) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }

	if l.Limit < 1 {
		fault("limit is %d: it must be at least 1 (to refuse everything use action \"block\")", l.Limit)
	}
	switch {
	case l.Window < MinWindow || l.Window > MaxWindow:
		fault("window is %s: it must be between %s and %s", l.Window, MinWindow, MaxWindow)
	case l.Window%time.Millisecond != 0:
		fault("window is %s: it must be a whole number of milliseconds", l.Window)
	case l.Window > 24*time.Hour && l.Window%time.Second != 0:
		fault("window is %s: above 24h it must be a whole number of seconds", l.Window)
	}
	if l.Burst != 0 && l.Algorithm != TokenBucket {
		fault("burst is set on a %s: only a token_bucket has one", l.Algorithm)
	}
	switch l.Algorithm {
	case SlidingWindow:
		if l.Limit > MaxWindowedLimit {
			fault("limit is %d: a sliding_window counts to %d; use token_bucket for the same rate, or fixed_window", l.Limit, int64(MaxWindowedLimit))
		}
	case FixedWindow:
		if l.Limit > MaxFixedLimit {
			fault("limit is %d: a fixed_window counts to %d", l.Limit, int64(MaxFixedLimit))
		}
	case SlidingLog:
		if l.Limit > MaxLogLimit {
			fault("limit is %d: a sliding_log keeps every unit and is capped at %d; use sliding_window", l.Limit, MaxLogLimit)
		}
	case TokenBucket:
		if l.Burst < 0 {
			fault("burst is %d: it must be at least 1, or absent for the limit itself", l.Burst)
		}
		if len(faults) == 0 {
			if err := algo.BucketFits(l.Limit, int64(l.Window/time.Microsecond), l.Capacity()); err != nil {
				faults = append(faults, err)
			}
		}
	default:
		fault("unknown algorithm %d", l.Algorithm)
	}
	return errors.Join(faults...)
}
