// Package sluice decides which requests may pass now: a rate limiter that is exact across any number of processes.
//
// # The short form
//
// Code that has one thing to limit needs a store, a limit and a key:
//
//	limiter := sluice.New(store, sluice.PerKey(sluice.PerMinute(100)), sluice.Options{})
//	if d, err := limiter.Allow(ctx, userID); err == nil && !d.Allowed {
//		// come back after d.RetryAfter
//	}
//
// # Rules
//
// Operators write rules: whom a rule concerns (Match), what it counts by (Key), its limits, and what happens beyond them
// (Action). Rules that count by the same dimensions form a layer; in each layer the matching rule with the lowest
// priority number applies, and all layers must pass. Compile turns rules into an immutable RuleSet; Limiter.SetRules
// replaces it while the limiter runs.
//
// # What is promised
//
// Check takes every limit of a request or none: a refused request charges nothing. Time is the store's clock, never
// this process's. A changed limit keeps the usage so far. Every decision is made within Options.Timeout: when the store
// does not answer, each rule's OnStoreError decides, and the decision says so in its Mode.
//
// Stores are in memstore (one process) and redisstore (shared); storetest is the suite each must pass.
package sluice
