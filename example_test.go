package sluice_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/memstore"
)

// noon stands still, so that the examples print the same at any time. Programs leave memstore.Options.Now unset.
func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// One thing to limit: three requests a minute for every key.
func ExampleLimiter_Allow() {
	store := memstore.New(memstore.Options{Now: noon})
	limiter := sluice.New(store, sluice.PerKey(sluice.PerMinute(3)), sluice.Options{})

	for range 4 {
		d, err := limiter.Allow(context.Background(), "alice")
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(d.Allowed, d.Tightest().Remaining)
	}
	d, _ := limiter.Allow(context.Background(), "bob")
	fmt.Println(d.Allowed, d.Tightest().Remaining)
	// Output:
	// true 2
	// true 1
	// true 0
	// false 0
	// true 2
}

// Rules: every user has 100 requests an hour, of which two may be searches. All limits of a request are taken together
// or none is, so refused searches cost nothing.
func ExampleCompile() {
	rules, faults := sluice.Compile([]sluice.Rule{
		{
			Name:   "users",
			Key:    []sluice.Dimension{sluice.User},
			Limits: []sluice.Limit{sluice.PerHour(100)},
		},
		{
			Name:   "search",
			Match:  sluice.Match{Routes: []string{"/search/*"}},
			Key:    []sluice.Dimension{sluice.User, sluice.Route},
			Limits: []sluice.Limit{sluice.PerHour(2)},
		},
		{
			Name:   "broken", // left out, and reported
			Limits: []sluice.Limit{sluice.Per(5, time.Millisecond)},
		},
	})
	for _, fault := range faults {
		fmt.Println(fault)
	}

	limiter := sluice.New(memstore.New(memstore.Options{Now: noon}), rules, sluice.Options{})
	for range 3 {
		d, err := limiter.Check(context.Background(), sluice.Request{
			Subject: sluice.Subject{User: "alice"},
			Route:   "/search/books",
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(d.Reason())
	}
	d, _ := limiter.Check(context.Background(), sluice.Request{Subject: sluice.Subject{User: "alice"}, Route: "/home"})
	fmt.Println(d.Reason())
	// Output:
	// rule "broken": limits[0].window: window is 1ms: it must be between 100ms and 8784h0m0s
	// allowed: rule "search" has 1 of 2 per 1h0m0s (sliding_window) left
	// allowed: rule "search" has 0 of 2 per 1h0m0s (sliding_window) left
	// refused: rule "search" has 0 of 2 per 1h0m0s (sliding_window) left, 1 asked for, retry in 1h30m0s
	// allowed: rule "users" has 97 of 100 per 1h0m0s (sliding_window) left
}

// Wait holds a job back until it may go ahead: here, one every 20 ms.
func ExampleLimiter_Wait() {
	limiter := sluice.New(memstore.New(memstore.Options{}), sluice.PerKey(sluice.Bucket(50, time.Second, 1)), sluice.Options{})
	job := sluice.Request{Subject: sluice.Subject{User: "reports"}}

	start := time.Now()
	for range 3 {
		if _, err := limiter.Wait(context.Background(), job); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println("three jobs took at least 40 ms:", time.Since(start) >= 39*time.Millisecond)

	job.Cost = 2
	_, err := limiter.Wait(context.Background(), job)
	fmt.Println(err)
	// Output:
	// three jobs took at least 40 ms: true
	// refused: a cost of 2 is above what rule "per-key" ever admits: 50 per 1s (token_bucket, burst 1): waiting cannot help
}

// A shadow rule counts and reports what it would refuse, and refuses nothing: a way to try a limit on real traffic.
func ExampleRule_shadow() {
	rules, _ := sluice.Compile([]sluice.Rule{{
		Name:   "trial",
		Key:    []sluice.Dimension{sluice.User},
		Limits: []sluice.Limit{sluice.PerMinute(1)},
		Action: sluice.Shadow,
	}})
	limiter := sluice.New(memstore.New(memstore.Options{Now: noon}), rules, sluice.Options{})

	for range 2 {
		d, err := limiter.Allow(context.Background(), "alice")
		if err != nil {
			fmt.Println(err)
			return
		}
		trial := d.Results()[0]
		fmt.Printf("allowed: %t; %q would have allowed: %t\n", d.Allowed, trial.Rule.Name, trial.Allowed)
	}
	// Output:
	// allowed: true; "trial" would have allowed: true
	// allowed: true; "trial" would have allowed: false
}

// Peek tells what is left and charges nothing.
func ExampleLimiter_Peek() {
	limiter := sluice.New(memstore.New(memstore.Options{Now: noon}), sluice.PerKey(sluice.PerDay(1000)), sluice.Options{})
	alice := sluice.Request{Subject: sluice.Subject{User: "alice"}, Cost: 50}

	if _, err := limiter.Check(context.Background(), alice); err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		d, err := limiter.Peek(context.Background(), alice)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(d.Allowed, d.Tightest().Remaining)
	}
	// Output:
	// true 950
	// true 950
}
