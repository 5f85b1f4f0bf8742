package algo

import (
	"math"
	"testing"
)

// A cost that can never pass is cut to one unit more than fits, so that no number leaves the exact range.
func TestCost_StaysInTheExactRange(t *testing.T) {
	t.Parallel()
	bucket := NewTokenBucket(7, second, 10, 0)
	throttle := NewTokenBucket(10, second, 2, second) // may owe 10 units more
	for _, c := range []struct {
		name        string
		plan        Plan
		units, want int64
	}{
		{"none", NewFixedWindow(5, second), 0, 0},
		{"all", NewFixedWindow(5, second), 5, 5},
		{"one more", NewFixedWindow(5, second), 6, 6},
		{"far more", NewSlidingWindow(5, second), math.MaxInt64, 6},
		{"largest limit", NewFixedWindow(MaxFixedLimit, hour), math.MaxInt64, MaxFixedLimit + 1},
		{"bucket", bucket, 3, 3 * bucket.perUnit},
		{"bucket, far more", bucket, math.MaxInt64, 11 * bucket.perUnit},
		{"throttle, owing all", throttle, 12, 12 * throttle.perUnit},
		{"throttle, far more", throttle, 1 << 40, 13 * throttle.perUnit},
		{"log", NewSlidingLog(200, second), MaxLogCost, MaxLogCost},
		{"log, more than a call may add", NewSlidingLog(200, second), MaxLogCost + 1, 201},
		{"short log, far more", NewSlidingLog(5, second), math.MaxInt64, 6},
	} {
		if got := c.plan.Cost(c.units); got != c.want {
			t.Errorf("%s: cost %d: got %d, want %d", c.name, c.units, got, c.want)
		}
	}
}

func TestPlan_TTLOutlivesWhatCounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		plan Plan
		want int64 // ms
	}{
		{"fixed: two windows", NewFixedWindow(5, minute), 120_000},
		{"sliding: two windows", NewSlidingWindow(5, 100_000), 200},
		{"log: a window and a second", NewSlidingLog(5, minute), 61_000},
		{"bucket: refill and a second", NewTokenBucket(10, second, 20, 0), 3000},
		{"bucket: rounded up", NewTokenBucket(3, second, 1, 0), 1334},
		{"bucket: with its delay", NewTokenBucket(10, second, 20, second/2), 3500},
		{"long bucket", NewTokenBucket(1, day, 10, 0), 864_001_000},
	} {
		if c.plan.TTL != c.want {
			t.Errorf("%s: got %d ms, want %d", c.name, c.plan.TTL, c.want)
		}
	}
}

// Uncharged is what the same take would have replied with a cost of nothing.
func TestUncharged_IsTheReplyToNoCost(t *testing.T) {
	t.Parallel()
	for _, p := range []Plan{
		NewFixedWindow(10, second), NewFixedWindow(MaxSlidingLimit, second), NewFixedWindow(MaxSlidingLimit+1, second), NewFixedWindow(MaxFixedLimit, hour),
		NewSlidingWindow(10, second), NewSlidingWindow(MaxSlidingLimit, day), NewTokenBucket(7, second, 10, 0), NewTokenBucket(7, day, 7000, 0),
	} {
		cost := p.Cost(3)
		v := p.Take(0, false, someday, p.Cost(4)).Next
		reply := p.Take(v, true, someday+1, cost).Reply
		if got, want := p.Uncharged(reply, cost), p.Take(v, true, someday+1, 0).Reply; got != want {
			t.Errorf("%+v: got %d, want %d", p, got, want)
		}
	}
	log := NewSlidingLog(10, second)
	entries := log.LogAdd(nil, someday, 4, 1)
	if got, want := log.Uncharged(log.LogTake(entries, someday, 3).Reply, 3), log.LogTake(entries, someday, 0).Reply; got != want {
		t.Errorf("log: got %d, want %d", got, want)
	}
}
