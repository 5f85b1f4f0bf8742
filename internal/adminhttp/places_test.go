package adminhttp

import (
	"fmt"
	"testing"
	"time"
)

func TestPlaces_AreBoundedForEachAccountByItself(t *testing.T) {
	t.Parallel()
	p, now := newPlaces(), time.Now()
	p.remember(try{"other", "home"}, now)
	p.remember(try{"roaming", "first"}, now)
	for i := range 10 * placesOfAccount {
		now = now.Add(time.Millisecond)
		p.remember(try{"roaming", "kept"}, now)
		p.remember(try{"roaming", fmt.Sprint(i)}, now)
	}
	last := fmt.Sprint(10*placesOfAccount - 1)
	for one, want := range map[try]bool{
		{"other", "home"}: true, {"roaming", "kept"}: true, {"roaming", last}: true, {"roaming", "first"}: false, {"other", last}: false,
	} {
		if got := p.know(one, now); got != want {
			t.Errorf("%+v: known %v, want %v", one, got, want)
		}
	}
	if len(p.last) != placesOfAccount+1 || len(p.of["roaming"]) != placesOfAccount {
		t.Errorf("%d places, %d of them of the one account; want %d of it and one more", len(p.last), len(p.of["roaming"]), placesOfAccount)
	}
}

func TestPlaces_ForgetTheAccountThatWasRightLongestAgo(t *testing.T) {
	t.Parallel()
	p, now := newPlaces(), time.Now()
	account := func(i int) try { return try{fmt.Sprint(i), "home"} }
	for i := range rightAccounts {
		p.remember(account(i), now.Add(time.Duration(i)))
	}
	now = now.Add(time.Second)
	p.remember(account(0), now) // used again
	p.remember(account(rightAccounts), now)
	for i, want := range map[int]bool{0: true, 1: false, 2: true, rightAccounts: true} {
		if got := p.know(account(i), now); got != want {
			t.Errorf("account %d: known %v, want %v", i, got, want)
		}
	}
	if len(p.of) != rightAccounts || len(p.last) != rightAccounts {
		t.Errorf("%d accounts with %d places, want %d", len(p.of), len(p.last), rightAccounts)
	}
}
