package memstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/memstore"
)

func take(t *testing.T, s *memstore.Store, user string, limit sluice.Limit) bool {
	t.Helper()
	group := []sluice.Charge{{
		Key:   sluice.Key{Namespace: "n", Rule: "r", Parts: []sluice.Part{{Dimension: sluice.User, Value: user}}},
		Limit: limit, Cost: 1,
	}}
	s.Take(t.Context(), [][]sluice.Charge{group})
	if err := group[0].State.Err; err != nil {
		t.Fatal(err)
	}
	return group[0].State.Allowed
}

func TestStore_FloodOfKeysNeitherGrowsItNorPassesUnlimitedNorDisturbsKnownKeys(t *testing.T) {
	t.Parallel()
	now := time.Now()
	const most, limit = 640, 5
	s := memstore.New(memstore.Options{MaxCounters: most, Now: func() time.Time { return now }})
	for range limit {
		if !take(t, s, "known", sluice.PerHour(limit)) {
			t.Fatal("the known key was refused within its limit")
		}
	}
	admitted := 0
	for i := range 50 * most {
		if take(t, s, fmt.Sprint("invented-", i), sluice.PerHour(limit)) {
			admitted++
		}
	}
	// Each shard may keep its share of keys and one overflow counter more.
	if n := s.Len(); n > most+64 {
		t.Errorf("got %d counters, want at most %d and one overflow counter in each of 64 shards", n, most)
	}
	if bound := most + 64*limit; admitted > bound {
		t.Errorf("got %d of %d invented keys admitted, want at most %d: one for each key kept, and the limit of each overflow counter", admitted, 50*most, bound)
	}
	if take(t, s, "known", sluice.PerHour(limit)) {
		t.Error("the known key forgot its usage")
	}
}

func TestStore_MakesRoomWhenCountersExpire(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := memstore.New(memstore.Options{MaxCounters: 640, Now: func() time.Time { return now }})
	fill := func(name string) (admitted int) {
		for i := range 2000 {
			if take(t, s, fmt.Sprint(name, i), sluice.PerSecond(1)) {
				admitted++
			}
		}
		return admitted
	}
	first := fill("first-")
	now = now.Add(time.Minute)
	for range 20 { // each look for an absent key sweeps a little
		fill("between-")
		now = now.Add(time.Minute)
	}
	if again := fill("again-"); again < first*9/10 {
		t.Errorf("got %d new keys admitted after the old ones expired, want about the %d of an empty store", again, first)
	}
}

func BenchmarkTake(b *testing.B) {
	s := memstore.New(memstore.Options{})
	group := []sluice.Charge{{
		Key:   sluice.Key{Namespace: "n", Rule: "r", Parts: []sluice.Part{{Dimension: sluice.User, Value: "u"}}},
		Limit: sluice.Bucket(1_000_000, time.Second, 1_000_000), Cost: 1,
	}}
	groups := [][]sluice.Charge{group}
	b.ReportAllocs()
	for b.Loop() {
		s.Take(context.Background(), groups)
	}
}
