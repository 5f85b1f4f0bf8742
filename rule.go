package sluice

import (
	"fmt"
	"net/netip"
	"time"
)

// Rule is what an operator writes: whom it concerns, what it counts by, its limits, and what happens beyond them.
// Rules are read, never modified, once they were handed to Compile.
type Rule struct {
	// Namespace separates rule sets. Default "default".
	Namespace string
	// Name is unique in its namespace, 1 to 128 characters.
	Name string
	// Priority: within a layer the matching rule with the lowest number wins. Default 100.
	Priority int
	// Match says which requests the rule concerns. Default: all.
	Match Match
	// Key lists the dimensions the rule counts by. Empty: everyone together. A request that lacks one of them is
	// not matched by the rule.
	Key []Dimension
	// Layer groups rules of which one applies. Default: the dimensions of Key.
	Layer string
	// Limits are checked together; all must pass. Actions Allow and Block have none.
	Limits []Limit
	// Action is what happens. Default Reject.
	Action Action
	// MaxDelay is how long Throttle may hold a request. Only with Throttle.
	MaxDelay time.Duration
	// OnStoreError is what happens when the store does not answer. Default FallLocal.
	OnStoreError StoreErrorPolicy
	// Label is the name clients see in headers. Default: the layer's name, so that rule names do not leak.
	Label string
	// Cost multiplies nothing: it is the cost of a request that names none. Default 1.
	Cost int64
	// Response shapes the answer to a refused request.
	Response Response
	// Disabled takes the rule out without deleting it.
	Disabled bool
}

// Match says which requests a rule concerns. Every non-empty field must fit; an empty one fits all.
type Match struct {
	Tenants []string
	Users   []string
	APIKeys []string
	Tiers   []string
	// Routes are path patterns: literal segments, {name} for one segment, a final * for the rest.
	Routes  []string
	Methods []string
	CIDRs   []netip.Prefix
	// Attributes must all be present with exactly this value.
	Attributes map[string]string
}

// Response shapes the answer to a refused request.
type Response struct {
	// Status is the HTTP status, from 400 to 599. Default 429.
	Status int
	// Message is shown to the client. Default: a sentence naming the policy.
	Message string
	// RetryAfter lengthens the computed one, never shortens it.
	RetryAfter time.Duration
}

// Action is what a rule does with requests beyond its limits.
type Action uint8

// The actions.
const (
	// Reject refuses the request.
	Reject Action = iota
	// Throttle charges now and lets the request through after a delay of up to MaxDelay. Needs token buckets.
	Throttle
	// Shadow counts and reports, and never refuses.
	Shadow
	// Allow exempts from the rule's own layer.
	Allow
	// Block refuses every request it matches.
	Block
)

var actionNames = [...]string{"reject", "throttle", "shadow", "allow", "block"}

// String returns the name used in rule files.
func (a Action) String() string {
	if int(a) < len(actionNames) {
		return actionNames[a]
	}
	return fmt.Sprintf("Action(%d)", a)
}

// MarshalText writes the name used in rule files.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads a name used in rule files; the empty text is Reject.
func (a *Action) UnmarshalText(text []byte) error {
	i, err := parseName(string(text), actionNames[:], "action")
	*a = Action(i)
	return err
}

// StoreErrorPolicy is what a rule does when the store does not answer.
type StoreErrorPolicy uint8

// The policies.
const (
	// FallLocal decides by this node's share of the limit, in the Limiter's fallback store.
	FallLocal StoreErrorPolicy = iota
	// FallOpen lets the request pass.
	FallOpen
	// FallClosed refuses it.
	FallClosed
)

var policyNames = [...]string{"local", "allow", "deny"}

// String returns the name used in rule files.
func (p StoreErrorPolicy) String() string {
	if int(p) < len(policyNames) {
		return policyNames[p]
	}
	return fmt.Sprintf("StoreErrorPolicy(%d)", p)
}

// MarshalText writes the name used in rule files.
func (p StoreErrorPolicy) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads a name used in rule files; the empty text is FallLocal.
func (p *StoreErrorPolicy) UnmarshalText(text []byte) error {
	i, err := parseName(string(text), policyNames[:], "on_store_error")
	*p = StoreErrorPolicy(i)
	return err
}

// parseName finds a name among those of an enumeration; the empty text is the first.
func parseName(text string, names []string, what string) (int, error) {
	if text == "" {
		return 0, nil
	}
	for i, name := range names {
		if name == text {
			return i, nil
		}
	}
	return 0, fmt.Errorf("unknown %s %q: want one of %q", what, text, names)
}
