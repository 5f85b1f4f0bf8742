package sluice_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/memstore"
)

// brokenStore fails, wholly or for some rules, and otherwise is the store it wraps.
type brokenStore struct {
	sluice.Store
	broken func(rule string) bool
	given  atomic.Int64
	takes  atomic.Int64
}

var errDown = errors.Join(sluice.ErrUnavailable, errors.New("down for the test"))

// Take answers each charge by itself, as a store does whose charges lie on several shards.
func (s *brokenStore) Take(ctx context.Context, groups [][]sluice.Charge) {
	s.takes.Add(1)
	for _, group := range groups {
		for i := range group {
			if s.broken(group[i].Key.Rule) {
				group[i].State = sluice.State{Err: errDown}
				continue
			}
			group[i].Receipted = true
			s.Store.Take(ctx, [][]sluice.Charge{group[i : i+1]})
		}
	}
}

func (s *brokenStore) Peek(ctx context.Context, groups [][]sluice.Charge) {
	for _, group := range groups {
		for i := range group {
			if s.broken(group[i].Key.Rule) {
				group[i].State = sluice.State{Err: errDown}
				continue
			}
			s.Store.Peek(ctx, [][]sluice.Charge{group[i : i+1]})
		}
	}
}

func (s *brokenStore) Give(ctx context.Context, charges []sluice.Charge) {
	for i := range charges {
		if charges[i].State.Receipt != (sluice.Receipt{}) {
			s.given.Add(1)
		}
	}
	s.Store.Give(ctx, charges)
}

func always(string) bool { return true }

func compile(t *testing.T, rules ...sluice.Rule) *sluice.RuleSet {
	t.Helper()
	set, faults := sluice.Compile(rules)
	for _, f := range faults {
		t.Fatal(f)
	}
	return set
}

func byUser(name string, limit sluice.Limit) sluice.Rule {
	return sluice.Rule{Name: name, Key: []sluice.Dimension{sluice.User}, Limits: []sluice.Limit{limit}, Layer: name}
}

func alice() sluice.Request { return sluice.Request{Subject: sluice.Subject{User: "alice"}} }

func check(t *testing.T, l *sluice.Limiter, req sluice.Request) sluice.Decision {
	t.Helper()
	d, err := l.Check(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestCheck_DeniesWhenOneOfTwoRulesIsSpentAndChargesNeither(t *testing.T) {
	t.Parallel()
	l := sluice.New(memstore.New(memstore.Options{}), compile(t, byUser("small", sluice.PerHour(1)), byUser("large", sluice.PerHour(10))), sluice.Options{})
	if d := check(t, l, alice()); !d.Allowed || len(d.Results()) != 2 {
		t.Fatalf("first: got %s", d.Reason())
	}
	d := check(t, l, alice())
	if d.Allowed || d.RetryAfter <= 0 || d.RetryAfter == sluice.Never {
		t.Fatalf("second: got %s, retry %s; want refused with a wait", d.Reason(), d.RetryAfter)
	}
	if tightest := d.Tightest(); tightest.Rule.Name != "small" {
		t.Errorf("got tightest %q, want small", tightest.Rule.Name)
	}
	for _, r := range d.Results() {
		if r.Rule.Name == "large" && r.Remaining != 9 {
			t.Errorf("the large rule has %d left, want 9", r.Remaining)
		}
	}
}

func TestCheck_TakesTheRulesCostUnlessTheRequestNamesOne(t *testing.T) {
	t.Parallel()
	rule := byUser("r", sluice.PerHour(100))
	rule.Cost = 5
	l := sluice.New(memstore.New(memstore.Options{}), compile(t, rule), sluice.Options{})
	if d := check(t, l, alice()); d.Results()[0].Remaining != 95 || d.Cost != 5 {
		t.Errorf("got %d left at cost %d, want 95 at 5", d.Results()[0].Remaining, d.Cost)
	}
	req := alice()
	req.Cost = 50
	if d := check(t, l, req); d.Results()[0].Remaining != 45 || d.Cost != 50 {
		t.Errorf("got %d left at cost %d, want 45 at 50", d.Results()[0].Remaining, d.Cost)
	}
}

func TestCheck_Actions(t *testing.T) {
	t.Parallel()
	bucket := sluice.Bucket(10, time.Second, 1)
	cases := []struct {
		name    string
		action  sluice.Action
		limits  []sluice.Limit
		allowed bool // of the second request
		delayed bool
		cause   sluice.Cause
	}{
		{"reject", sluice.Reject, []sluice.Limit{bucket}, false, false, sluice.ByLimits},
		{"throttle", sluice.Throttle, []sluice.Limit{bucket}, true, true, sluice.ByLimits},
		{"shadow", sluice.Shadow, []sluice.Limit{bucket}, true, false, sluice.ByLimits},
		{"allow", sluice.Allow, nil, true, false, sluice.NoRule},
		{"block", sluice.Block, nil, false, false, sluice.BlockedByRule},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			now := time.Now()
			store := memstore.New(memstore.Options{Now: func() time.Time { return now }})
			rule := sluice.Rule{Name: "r", Key: []sluice.Dimension{sluice.User}, Limits: c.limits, Action: c.action}
			if c.action == sluice.Throttle {
				rule.MaxDelay = time.Second
			}
			l := sluice.New(store, compile(t, rule), sluice.Options{})
			check(t, l, alice())
			d := check(t, l, alice())
			if d.Allowed != c.allowed || (d.Delay > 0) != c.delayed || d.Cause != c.cause {
				t.Errorf("got allowed=%v delay=%s cause=%d (%s)", d.Allowed, d.Delay, d.Cause, d.Reason())
			}
		})
	}
}

func TestCheck_BlockChargesNoOtherLayer(t *testing.T) {
	t.Parallel()
	block := sluice.Rule{Name: "block", Action: sluice.Block, Match: sluice.Match{Tiers: []string{"banned"}}}
	l := sluice.New(memstore.New(memstore.Options{}), compile(t, byUser("r", sluice.PerHour(5)), block), sluice.Options{})
	req := alice()
	req.Subject.Tier = "banned"
	for range 10 {
		if d := check(t, l, req); d.Allowed {
			t.Fatal("a blocked request passed")
		}
	}
	if d := check(t, l, alice()); d.Results()[0].Remaining != 4 {
		t.Errorf("got %d left, want 4: blocked requests must charge nothing", d.Results()[0].Remaining)
	}
}

func TestCheck_SubjectDecidesBeforeRules(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := sluice.New(memstore.New(memstore.Options{}), compile(t, byUser("r", sluice.PerHour(5))), sluice.Options{Now: func() time.Time { return now }})
	cases := []struct {
		name    string
		subject sluice.Subject
		allowed bool
		cause   sluice.Cause
	}{
		{"exempt", sluice.Subject{User: "u", Exempt: true}, true, sluice.Exempted},
		{"blocked for good", sluice.Subject{User: "u", Blocked: &sluice.BlockedSubject{Reason: "fraud"}}, false, sluice.BlockedByList},
		{"blocked until later", sluice.Subject{User: "u", Blocked: &sluice.BlockedSubject{Until: now.Add(time.Minute)}}, false, sluice.BlockedByList},
		{"block is over", sluice.Subject{User: "u", Blocked: &sluice.BlockedSubject{Until: now}}, true, sluice.ByLimits},
		{"blocked though exempt", sluice.Subject{User: "u", Exempt: true, Blocked: &sluice.BlockedSubject{}}, false, sluice.BlockedByList},
		{"unknown", sluice.Subject{}, true, sluice.NoRule},
	}
	for _, c := range cases {
		if d := check(t, l, sluice.Request{Subject: c.subject}); d.Allowed != c.allowed || d.Cause != c.cause {
			t.Errorf("%s: got %s (cause %d), want allowed=%v cause %d", c.name, d.Reason(), d.Cause, c.allowed, c.cause)
		}
	}
	l.SetEnabled(false)
	if d := check(t, l, sluice.Request{Subject: cases[1].subject}); !d.Allowed || d.Cause != sluice.Disabled {
		t.Errorf("switched off: got %s", d.Reason())
	}
}

func TestCheck_OverridesReplaceARulesLimits(t *testing.T) {
	t.Parallel()
	l := sluice.New(memstore.New(memstore.Options{}), compile(t, byUser("r", sluice.PerHour(2))), sluice.Options{})
	check(t, l, alice())
	req := alice()
	req.Subject.Overrides = []sluice.Override{{Rule: "other", Limits: []sluice.Limit{sluice.PerHour(1)}}, {Rule: "r", Limits: []sluice.Limit{sluice.PerHour(100)}}}
	if d := check(t, l, req); d.Results()[0].Remaining != 98 {
		t.Errorf("got %d left, want 98: 100 by the override, usage kept", d.Results()[0].Remaining)
	}
	req.Subject.Overrides[1].Limits[0].Limit = -1
	if d := check(t, l, req); d.Allowed || d.Results()[0].Limit.Limit != 2 {
		t.Errorf("an invalid override: got %s, want the rule's own limit", d.Reason())
	}
}

func TestCheck_StoreDown(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name     string
		policy   sluice.StoreErrorPolicy
		fallback bool
		nodes    int
		admits   int
		mode     sluice.Mode
	}{
		{"allow passes everything", sluice.FallOpen, true, 1, 30, sluice.Open},
		{"deny refuses everything", sluice.FallClosed, true, 1, 0, sluice.Closed},
		{"local keeps the limit", sluice.FallLocal, true, 1, 12, sluice.Local},
		{"local keeps this node's share", sluice.FallLocal, true, 3, 4, sluice.Local},
		{"local admits at least one", sluice.FallLocal, true, 100, 1, sluice.Local},
		{"local without a fallback passes, labelled", sluice.FallLocal, false, 1, 30, sluice.Open},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			now := time.Now()
			memory := func() sluice.Store { return memstore.New(memstore.Options{Now: func() time.Time { return now }}) }
			opts := sluice.Options{Nodes: func() int { return c.nodes }}
			if c.fallback {
				opts.Fallback = memory()
			}
			for _, limit := range []sluice.Limit{sluice.PerHour(12), sluice.Bucket(12, time.Hour, 12)} {
				rule := byUser("r", limit)
				rule.OnStoreError = c.policy
				l := sluice.New(&brokenStore{Store: memory(), broken: always}, compile(t, rule), opts)
				admitted := 0
				for range 30 {
					d := check(t, l, alice())
					if d.Allowed {
						admitted++
					}
					if d.Mode != c.mode || !errors.Is(d.StoreErr, sluice.ErrUnavailable) || d.Results()[0].Mode != c.mode {
						t.Fatalf("got mode %s, error %v; want %s and ErrUnavailable", d.Mode, d.StoreErr, c.mode)
					}
				}
				if admitted != c.admits {
					t.Errorf("%s: got %d admitted, want %d", limit, admitted, c.admits)
				}
			}
		})
	}
}

func TestCheck_OneShardDown_RefusalElsewhereGivesBackWhatHealthyShardsTook(t *testing.T) {
	t.Parallel()
	closed := byUser("closed", sluice.PerHour(10))
	closed.OnStoreError = sluice.FallClosed
	store := &brokenStore{Store: memstore.New(memstore.Options{}), broken: func(rule string) bool { return rule == "closed" }}
	l := sluice.New(store, compile(t, closed, byUser("healthy", sluice.PerHour(10))), sluice.Options{})
	d := check(t, l, alice())
	if d.Allowed || d.Mode != sluice.Closed {
		t.Fatalf("got %s, want a refusal by the closed rule", d.Reason())
	}
	if store.given.Load() != 1 {
		t.Errorf("got %d charges given back, want 1", store.given.Load())
	}
	p, err := l.Peek(t.Context(), alice())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range p.Results() {
		if r.Rule.Name == "healthy" && r.Remaining != 10 {
			t.Errorf("the healthy rule has %d left, want 10", r.Remaining)
		}
	}
}

func TestCheck_OneShardDown_OthersStayExact(t *testing.T) {
	t.Parallel()
	open := byUser("open", sluice.PerHour(10))
	open.OnStoreError = sluice.FallOpen
	store := &brokenStore{Store: memstore.New(memstore.Options{}), broken: func(rule string) bool { return rule == "open" }}
	l := sluice.New(store, compile(t, open, byUser("healthy", sluice.PerHour(2))), sluice.Options{})
	admitted := 0
	for range 5 {
		d := check(t, l, alice())
		if d.Allowed {
			admitted++
		}
		if d.Mode != sluice.Open {
			t.Errorf("got mode %s, want the weakest: open", d.Mode)
		}
	}
	if admitted != 2 {
		t.Errorf("got %d admitted, want 2 by the healthy rule", admitted)
	}
}

func TestCheck_AnswersWithinTheTimeoutWhenTheStoreHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := sluice.New(hangingStore{}, compile(t, byUser("r", sluice.PerHour(1))), sluice.Options{Timeout: 10 * time.Millisecond, Fallback: memstore.New(memstore.Options{})})
		for i := range 20 {
			start := time.Now()
			d := check(t, l, alice())
			took := time.Since(start)
			if took > 10*time.Millisecond || took < 8*time.Millisecond {
				t.Errorf("decision %d took %s, want seven eighths to all of 10ms", i, took)
			}
			if d.Mode != sluice.Local {
				t.Errorf("got mode %s, want local", d.Mode)
			}
			time.Sleep(700 * time.Microsecond) //nolint:forbidigo // the bubble's clock: decisions begin at all phases of a shared deadline
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Millisecond)
		defer cancel()
		start := time.Now()
		if _, err := l.Check(ctx, alice()); err != nil || time.Since(start) != 3*time.Millisecond {
			t.Errorf("with a caller's deadline of 3ms: got %v after %s", err, time.Since(start))
		}
	})
}

// hangingStore answers when the context ends, like a Redis that is paused.
type hangingStore struct{ sluice.Store }

func (hangingStore) Take(ctx context.Context, groups [][]sluice.Charge) {
	<-ctx.Done()
	for _, group := range groups {
		for i := range group {
			group[i].State = sluice.State{Err: errors.Join(sluice.ErrUnavailable, ctx.Err())}
		}
	}
}

func TestCheck_RefusesBadRequests(t *testing.T) {
	t.Parallel()
	l := sluice.New(memstore.New(memstore.Options{}), sluice.PerKey(sluice.PerHour(1)), sluice.Options{})
	req := alice()
	req.Cost = -1
	if _, err := l.Check(t.Context(), req); !errors.Is(err, sluice.ErrInvalidRequest) {
		t.Errorf("negative cost: got %v, want ErrInvalidRequest", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Check(ctx, alice()); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v, want context.Canceled", err)
	}
	if d := check(t, l, alice()); !d.Allowed {
		t.Errorf("got %s, want the unit untouched by bad requests", d.Reason())
	}
}

func TestRefund_GivesBackEveryLimitOnce(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	store := memstore.New(memstore.Options{Now: func() time.Time { return now }})
	rule := byUser("r", sluice.PerHour(10))
	rule.Limits = append(rule.Limits, sluice.Bucket(10, time.Minute, 10), sluice.Limit{Algorithm: sluice.SlidingLog, Limit: 10, Window: time.Minute})
	l := sluice.New(store, compile(t, rule), sluice.Options{})
	req := alice()
	req.Refundable, req.Cost = true, 4
	d := check(t, l, req)
	if err := l.Refund(t.Context(), req, d); err != nil {
		t.Fatal(err)
	}
	p, err := l.Peek(t.Context(), alice())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range p.Results() {
		if r.Remaining != 10 {
			t.Errorf("%s: got %d left, want 10", r.Limit, r.Remaining)
		}
	}
}

func TestReset_ForgetsTheSubjectsUsage(t *testing.T) {
	t.Parallel()
	l := sluice.New(memstore.New(memstore.Options{}), sluice.PerKey(sluice.PerHour(1)), sluice.Options{})
	check(t, l, alice())
	if err := l.Reset(t.Context(), alice()); err != nil {
		t.Fatal(err)
	}
	if d := check(t, l, alice()); !d.Allowed {
		t.Errorf("after a reset: got %s", d.Reason())
	}
}

func TestWait_ReturnsWhenTheRequestPasses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := sluice.New(memstore.New(memstore.Options{}), sluice.PerKey(sluice.Bucket(1, time.Second, 1)), sluice.Options{})
		start := time.Now()
		for range 4 {
			if _, err := l.Wait(t.Context(), alice()); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took < 3*time.Second || took > 3*time.Second+time.Millisecond {
			t.Errorf("four units at one per second took %s, want 3s", took)
		}
		req := alice()
		req.Cost = 2
		if _, err := l.Wait(t.Context(), req); !errors.Is(err, sluice.ErrNeverPasses) {
			t.Errorf("cost above the burst: got %v, want ErrNeverPasses", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		start = time.Now()
		if _, err := l.Wait(ctx, alice()); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 0 {
			t.Errorf("a wait beyond the deadline: got %v after %s, want DeadlineExceeded at once", err, time.Since(start))
		}
	})
}

func TestSetRules_ActsOnTheNextCheckAndKeepsTheUsage(t *testing.T) {
	t.Parallel()
	l := sluice.New(memstore.New(memstore.Options{}), compile(t, byUser("r", sluice.PerHour(2))), sluice.Options{})
	check(t, l, alice())
	l.SetRules(compile(t, byUser("r", sluice.PerHour(10))).WithRevision(7))
	if d := check(t, l, alice()); d.Results()[0].Remaining != 8 || d.Revision != 7 {
		t.Errorf("got %d left at revision %d, want 8 at 7", d.Results()[0].Remaining, d.Revision)
	}
}

type recorder struct{ seen []sluice.Decision }

func (r *recorder) Decided(_ context.Context, _ sluice.Request, d sluice.Decision) {
	r.seen = append(r.seen, d)
}

func TestObserver_IsToldOfEveryDecisionOnce(t *testing.T) {
	t.Parallel()
	var r recorder
	l := sluice.New(memstore.New(memstore.Options{}), sluice.PerKey(sluice.PerHour(1)), sluice.Options{Observer: &r})
	first, second := check(t, l, alice()), check(t, l, alice())
	if len(r.seen) != 2 || r.seen[0].ID != first.ID || r.seen[1].ID != second.ID || first.ID == second.ID {
		t.Errorf("got %d decisions, want these two with ids of their own", len(r.seen))
	}
}

func TestReason_NamesTheRuleAndTheWay(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := sluice.New(memstore.New(memstore.Options{Now: func() time.Time { return now }}), compile(t, byUser("search-free", sluice.PerHour(1))), sluice.Options{})
	first := check(t, l, alice())
	second := check(t, l, alice())
	req := alice()
	req.Cost = 9
	third := check(t, l, req)
	for _, c := range []struct {
		d    sluice.Decision
		want string
	}{
		{first, `allowed: rule "search-free" has 0 of 1 per 1h0m0s (sliding_window) left`},
		{second, `refused: rule "search-free" has 0 of 1 per 1h0m0s (sliding_window) left, 1 asked for, retry in 2h0m0s`},
		{third, `refused: a cost of 9 is above what rule "search-free" ever admits: 1 per 1h0m0s (sliding_window)`},
	} {
		if got := c.d.Reason(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	if id := first.ID.String(); len(id) != 32 || strings.Trim(id, "0123456789abcdef") != "" {
		t.Errorf("id %q is not 32 hexadecimal digits", id)
	}
}

func TestDecision_CarriesMoreResultsThanItHasRoomFor(t *testing.T) {
	t.Parallel()
	var rules []sluice.Rule
	for _, name := range strings.Fields("a b c d e f g") {
		rules = append(rules, byUser(name, sluice.PerHour(5)))
	}
	l := sluice.New(memstore.New(memstore.Options{}), compile(t, rules...), sluice.Options{})
	d := check(t, l, alice())
	if got := len(d.Results()); got != 7 {
		t.Fatalf("got %d results, want 7", got)
	}
	for i, r := range d.Results() {
		if r.Rule.Name != rules[i].Name || r.Remaining != 4 {
			t.Errorf("result %d: got %s with %d left, want %s with 4", i, r.Rule.Name, r.Remaining, rules[i].Name)
		}
	}
}

func TestCheck_AllocatesNothing(t *testing.T) {
	l := sluice.New(memstore.New(memstore.Options{}), sluice.PerKey(sluice.Bucket(1e6, time.Second, 1e6)), sluice.Options{Timeout: -1})
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() { _, _ = l.Check(ctx, alice()) }); n != 0 && !raceEnabled {
		t.Errorf("got %v allocations per check, want 0", n)
	}
}
