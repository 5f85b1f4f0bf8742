package storetest

import (
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
)

// promises are what a trace cannot say: concurrency, errors, several groups in one call.
var promises = []struct {
	name  string
	check func(*testing.T, Fixture)
}{
	{"AdmitsExactlyTheLimitToConcurrentCallers", admitsExactlyTheLimit},
	{"AdmitsExactlyTheSmallerLimitOfTwo", admitsTheSmallerOfTwo},
	{"TakesGroupsOfOneCallIndependently", groupsAreIndependent},
	{"RefusesTheSameCounterTwiceInOneGroup", refusesSameCounterTwice},
	{"TakesTheSameCounterInTwoGroups", takesSameCounterInTwoGroups},
	{"RefusesInvalidLimitsWithoutCharging", refusesInvalidLimits},
	{"KeepsKeysThatLookAlikeApart", keepsKeysApart},
	{"CountsIPv6ByItsPrefix", countsIPv6ByPrefix},
}

var algorithms = []sluice.Algorithm{sluice.SlidingWindow, sluice.FixedWindow, sluice.SlidingLog, sluice.TokenBucket}

func admitsExactlyTheLimit(t *testing.T, f Fixture) {
	const limit, callers, each = 100, 16, 25
	for _, a := range algorithms {
		t.Run(a.String(), func(t *testing.T) {
			charge := sluice.Charge{Key: userKey(freshNamespace(), "hot", "u"), Limit: sluice.Limit{Algorithm: a, Limit: limit, Window: time.Hour}, Cost: 1}
			admitted := hammer(t, f.Store, callers, each, charge)
			if admitted != limit {
				t.Errorf("%d callers × %d requests on %s: got %d admitted, want %d", callers, each, charge.Limit, admitted, limit)
			}
		})
	}
}

func admitsTheSmallerOfTwo(t *testing.T, f Fixture) {
	const callers, each = 16, 20
	ns := freshNamespace()
	small := sluice.Charge{Key: userKey(ns, "small", "u"), Limit: sluice.Limit{Algorithm: sluice.TokenBucket, Limit: 60, Window: time.Hour}, Cost: 1}
	large := sluice.Charge{Key: userKey(ns, "large", "u"), Limit: sluice.PerHour(200), Cost: 2}
	if admitted := hammer(t, f.Store, callers, each, small, large); admitted != 60 {
		t.Fatalf("got %d admitted, want 60", admitted)
	}
	group := []sluice.Charge{large}
	f.Store.Peek(t.Context(), [][]sluice.Charge{group})
	if got := group[0].State.Remaining; got != 80 {
		t.Errorf("the larger limit has %d left, want 80: refused requests must charge nothing", got)
	}
}

// hammer takes the charges as one group from many goroutines and returns how often they were admitted.
func hammer(t *testing.T, store sluice.Store, callers, each int, charges ...sluice.Charge) int64 {
	t.Helper()
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			group := append([]sluice.Charge(nil), charges...)
			for range each {
				store.Take(t.Context(), [][]sluice.Charge{group})
				ok, err := taken(group)
				if err != nil {
					t.Error(err)
					return
				}
				if ok {
					admitted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return admitted.Load()
}

func groupsAreIndependent(t *testing.T, f Fixture) {
	ns := freshNamespace()
	charge := func(user string, cost int64) sluice.Charge {
		return sluice.Charge{Key: userKey(ns, "r", user), Limit: sluice.PerMinute(10), Cost: cost}
	}
	groups := [][]sluice.Charge{
		{charge("a", 1), charge("b", 11)}, // refused by its second charge
		{charge("c", 3)},
		{charge("a", 10)}, // fits only because the first group charged nothing
	}
	f.Store.Take(t.Context(), groups)
	for i, want := range []bool{false, true, true} {
		got, err := taken(groups[i])
		if err != nil || got != want {
			t.Errorf("group %d: got taken=%v, error %v; want %v", i+1, got, err, want)
		}
	}
	if got := groups[0][0].State; !got.Allowed || got.Remaining != 10 {
		t.Errorf("a passing charge of a refused group: got %+v, want allowed with 10 remaining", got)
	}
}

func refusesSameCounterTwice(t *testing.T, f Fixture) {
	ns := freshNamespace()
	c := sluice.Charge{Key: userKey(ns, "r", "u"), Limit: sluice.PerMinute(10), Cost: 1}
	raised := c
	raised.Limit.Limit = 20 // another number, the same counter
	for _, group := range [][]sluice.Charge{{c, c}, {c, raised}} {
		f.Store.Take(t.Context(), [][]sluice.Charge{group})
		for i := range group {
			if !errors.Is(group[i].State.Err, sluice.ErrSameCounter) {
				t.Errorf("charge %d: got error %v, want ErrSameCounter", i+1, group[i].State.Err)
			}
		}
	}
	left := []sluice.Charge{c}
	f.Store.Peek(t.Context(), [][]sluice.Charge{left})
	if left[0].State.Remaining != 10 {
		t.Errorf("got %d remaining, want 10: nothing may be charged", left[0].State.Remaining)
	}
}

func takesSameCounterInTwoGroups(t *testing.T, f Fixture) {
	c := sluice.Charge{Key: userKey(freshNamespace(), "r", "u"), Limit: sluice.PerMinute(1), Cost: 1}
	groups := [][]sluice.Charge{{c}, {c}}
	f.Store.Take(t.Context(), groups)
	if first, second := groups[0][0].State, groups[1][0].State; !first.Allowed || second.Allowed {
		t.Errorf("got %v then %v, want the first admitted and the second refused", first.Allowed, second.Allowed)
	}
}

func refusesInvalidLimits(t *testing.T, f Fixture) {
	ns := freshNamespace()
	good := sluice.Charge{Key: userKey(ns, "good", "u"), Limit: sluice.PerMinute(10), Cost: 1}
	for _, bad := range []sluice.Charge{
		{Key: userKey(ns, "zero", "u"), Limit: sluice.PerMinute(0), Cost: 1},
		{Key: userKey(ns, "huge", "u"), Limit: sluice.PerMinute(sluice.MaxWindowedLimit + 1), Cost: 1},
		{Key: userKey(ns, "negative", "u"), Limit: sluice.PerMinute(1), Cost: -1},
	} {
		group := []sluice.Charge{good, bad}
		f.Store.Take(t.Context(), [][]sluice.Charge{group})
		if group[0].State.Err == nil || group[1].State.Err == nil {
			t.Errorf("%s cost %d: got no error", bad.Limit, bad.Cost)
		}
	}
	left := []sluice.Charge{good}
	f.Store.Peek(t.Context(), [][]sluice.Charge{left})
	if left[0].State.Remaining != 10 {
		t.Errorf("got %d remaining, want 10: nothing may be charged", left[0].State.Remaining)
	}
}

func keepsKeysApart(t *testing.T, f Fixture) {
	ns := freshNamespace()
	part := func(d sluice.Dimension, v string) sluice.Part { return sluice.Part{Dimension: d, Value: v} }
	keys := []sluice.Key{
		{Namespace: ns, Rule: "r", Parts: []sluice.Part{part(sluice.User, "a"), part(sluice.Route, "b")}},
		{Namespace: ns, Rule: "r", Parts: []sluice.Part{part(sluice.User, "ab"), part(sluice.Route, "")}},
		{Namespace: ns, Rule: "r", Parts: []sluice.Part{part(sluice.User, "a"), part(sluice.Method, "b")}},
		{Namespace: ns, Rule: "r", Parts: []sluice.Part{part(sluice.Tenant, "a"), part(sluice.Route, "b")}},
		{Namespace: ns, Rule: "r", Parts: []sluice.Part{part(sluice.User, "a")}},
		{Namespace: ns, Rule: "r", Parts: []sluice.Part{part("user ", "a")}},
		{Namespace: ns, Rule: "r2", Parts: []sluice.Part{part(sluice.User, "a")}},
		{Namespace: ns + "r", Rule: "", Parts: []sluice.Part{part(sluice.User, "a")}},
		{Namespace: ns, Rule: "r"},
		{Namespace: ns, Rule: "r", Parts: []sluice.Part{part(sluice.User, "{a}:\x00")}},
	}
	for i, key := range keys {
		group := []sluice.Charge{{Key: key, Limit: sluice.PerMinute(1), Cost: 1}}
		f.Store.Take(t.Context(), [][]sluice.Charge{group})
		if s := group[0].State; s.Err != nil || !s.Allowed {
			t.Errorf("key %d %v shares a counter with an earlier one (%v)", i, key, s.Err)
		}
	}
}

func countsIPv6ByPrefix(t *testing.T, f Fixture) {
	ns := freshNamespace()
	for _, c := range []struct {
		ip    string
		allow bool
	}{
		{"2001:db8:1:2::1", true},
		{"2001:db8:1:2:ffff::9", false}, // the same /64
		{"2001:db8:1:3::1", true},
		{"192.0.2.1", true},
		{"::ffff:192.0.2.1", false}, // the same address, mapped
		{"192.0.2.2", true},
	} {
		group := []sluice.Charge{{Key: ipKey(ns, c.ip), Limit: sluice.PerMinute(1), Cost: 1}}
		f.Store.Take(t.Context(), [][]sluice.Charge{group})
		if s := group[0].State; s.Err != nil || s.Allowed != c.allow {
			t.Errorf("%s: got allowed=%v error=%v, want %v", c.ip, s.Allowed, s.Err, c.allow)
		}
	}
}

func ipKey(namespace, ip string) sluice.Key {
	return sluice.Key{Namespace: namespace, Rule: "ip", Parts: []sluice.Part{{Dimension: sluice.IP, IP: netip.MustParseAddr(ip)}}}
}
