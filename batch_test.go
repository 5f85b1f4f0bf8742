package sluice_test

import (
	"errors"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/memstore"
)

func TestCheckAll_DecidesEachRequestByItselfInTheirOrderWithOneCall(t *testing.T) {
	t.Parallel()
	store := &brokenStore{Store: memstore.New(memstore.Options{}), broken: func(string) bool { return false }}
	l := sluice.New(store, compile(t, byUser("two", sluice.PerHour(2))), sluice.Options{})
	bob := sluice.Request{Subject: sluice.Subject{User: "bob"}}
	nobody := sluice.Request{}
	exempt := sluice.Request{Subject: sluice.Subject{User: "alice", Exempt: true}}
	reqs := []sluice.Request{alice(), bob, nobody, alice(), exempt, alice(), bob}
	decisions := make([]sluice.Decision, len(reqs))
	if err := l.CheckAll(t.Context(), reqs, decisions); err != nil {
		t.Fatal(err)
	}
	want := []bool{true, true, true, true, true, false, true}
	for i, d := range decisions {
		if d.Allowed != want[i] {
			t.Errorf("request %d: got %s, want allowed %t", i, d.Reason(), want[i])
		}
		if d.ID == (sluice.DecisionID{}) {
			t.Errorf("request %d: no id", i)
		}
	}
	if n := store.takes.Load(); n != 1 {
		t.Errorf("got %d calls to the store, want 1", n)
	}
	if decisions[2].Cause != sluice.NoRule || decisions[4].Cause != sluice.Exempted {
		t.Errorf("got causes %v and %v", decisions[2].Cause, decisions[4].Cause)
	}
}

func TestCheckAll_FallsBackPerRequestWhenTheStoreFails(t *testing.T) {
	t.Parallel()
	store := &brokenStore{Store: memstore.New(memstore.Options{}), broken: always}
	closed := byUser("closed", sluice.PerHour(2))
	closed.OnStoreError, closed.Match.Users = sluice.FallClosed, []string{"bob"}
	open := byUser("open", sluice.PerHour(2))
	open.OnStoreError, open.Match.Users = sluice.FallOpen, []string{"alice"}
	l := sluice.New(store, compile(t, closed, open), sluice.Options{})
	decisions := make([]sluice.Decision, 2)
	if err := l.CheckAll(t.Context(), []sluice.Request{alice(), {Subject: sluice.Subject{User: "bob"}}}, decisions); err != nil {
		t.Fatal(err)
	}
	if d := decisions[0]; !d.Allowed || d.Mode != sluice.Open {
		t.Errorf("alice: got %s in mode %s, want allowed, open", d.Reason(), d.Mode)
	}
	if d := decisions[1]; d.Allowed || d.Mode != sluice.Closed {
		t.Errorf("bob: got %s in mode %s, want refused, closed", d.Reason(), d.Mode)
	}
}

func TestCheckAll_ChargesNothingWhenOneRequestIsInvalid(t *testing.T) {
	t.Parallel()
	l := sluice.New(memstore.New(memstore.Options{}), compile(t, byUser("one", sluice.PerHour(1))), sluice.Options{})
	bad := alice()
	bad.Cost = -1
	err := l.CheckAll(t.Context(), []sluice.Request{alice(), bad}, make([]sluice.Decision, 2))
	if !errors.Is(err, sluice.ErrInvalidRequest) {
		t.Fatalf("got %v, want ErrInvalidRequest", err)
	}
	if err := l.CheckAll(t.Context(), []sluice.Request{alice()}, nil); !errors.Is(err, sluice.ErrInvalidRequest) {
		t.Errorf("without room for the decision: got %v, want ErrInvalidRequest", err)
	}
	if d := check(t, l, alice()); !d.Allowed {
		t.Errorf("got %s, want allowed: the call before charged nothing", d.Reason())
	}
}

func TestCredit_GivesBackUnitsAndNeverMoreThanWereTaken(t *testing.T) {
	t.Parallel()
	for _, limit := range []sluice.Limit{sluice.PerDay(10), {Algorithm: sluice.FixedWindow, Limit: 10, Window: 366 * 24 * 3600e9}, sluice.Bucket(10, 24*3600e9, 10)} {
		l := sluice.New(memstore.New(memstore.Options{}), compile(t, byUser("r", limit)), sluice.Options{})
		req := alice()
		req.Cost = 6
		check(t, l, req)
		req.Cost = 2
		if err := l.Credit(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		if d, _ := l.Peek(t.Context(), alice()); d.Results()[0].Remaining != 6 {
			t.Errorf("%s: got %d left after taking 6 and giving 2, want 6", limit, d.Results()[0].Remaining)
		}
		req.Cost = 100
		if err := l.Credit(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		if d, _ := l.Peek(t.Context(), alice()); d.Results()[0].Remaining != 10 {
			t.Errorf("%s: got %d left after giving 100, want 10", limit, d.Results()[0].Remaining)
		}
	}
}

func TestCredit_RefusesRulesWithALog(t *testing.T) {
	t.Parallel()
	log := sluice.Limit{Algorithm: sluice.SlidingLog, Limit: 5, Window: 3600e9}
	l := sluice.New(memstore.New(memstore.Options{}), compile(t, byUser("r", log)), sluice.Options{})
	if err := l.Credit(t.Context(), alice()); !errors.Is(err, sluice.ErrInvalidRequest) {
		t.Errorf("got %v, want ErrInvalidRequest", err)
	}
}
