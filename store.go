package sluice

import (
	"context"
	"math"
	"net/netip"
	"time"
)

// Store keeps counters. Implementations are safe for concurrent use, answer by their own clock, and wrap every
// failure so that errors.Is(state.Err, ErrUnavailable) holds.
//
// Answers are written into the charges themselves (Charge.State), so that a caller who reuses its slices allocates nothing.
type Store interface {
	// Take takes each group whole or not at all; groups are independent of one another and may name the same counter.
	// A group is taken when every charge that is not Shadow has State.Allowed and no State.Err.
	//
	// When a charge is refused, everything the group took is given back before Take returns. When a charge failed
	// and none was refused, what the others took stays taken: the caller decides, and may Give it back.
	Take(ctx context.Context, groups [][]Charge)

	// Peek tells what Take would answer, and charges nothing. State.Remaining is what is left now.
	Peek(ctx context.Context, groups [][]Charge)

	// Give returns what earlier Takes charged. Each charge must carry the State its Take wrote, with a Receipt.
	// It is exact for windows and logs; a token bucket forgives the cost less what has refilled since.
	// Give at most once for each Take: a second one would admit too much.
	Give(ctx context.Context, charges []Charge)

	// Reset forgets the counters of the charges.
	Reset(ctx context.Context, charges []Charge)
}

// Charge is one limit, what it counts by, and the units to take. The store answers in State.
type Charge struct {
	Key   Key
	Limit Limit
	// Cost is the number of units, at least 0. A cost above the limit's capacity is refused for good.
	Cost int64
	// MaxDelay lets a token bucket's debt exceed its burst by that much time; State.Delay tells the wait. Default 0.
	MaxDelay time.Duration
	// Shadow counts the charge when the rest of its group passes, and lets its own refusal refuse nothing.
	Shadow bool
	// Receipted asks for State.Receipt, which Give needs.
	Receipted bool

	State State
}

// State is a store's answer to one charge.
type State struct {
	// Allowed says that this limit passes. In a refused group other limits may have passed; they were not charged.
	Allowed bool
	// Mode is how the answer was made.
	Mode Mode
	// Remaining is the number of units left, between 0 and the limit's capacity.
	Remaining int64
	// ResetAfter is the time until the limit has all its units again; for windows, until the window ends.
	ResetAfter time.Duration
	// RetryAfter is the time until the same charge can pass: 0 when it passed, Never when it cannot.
	RetryAfter time.Duration
	// Delay is how long a charge with MaxDelay must wait before it goes ahead.
	Delay time.Duration
	// Time is the store's clock when it answered, in microseconds since the Unix epoch; 0 where nobody asked for it.
	// It is known for charges that are Receipted and for those of groups with several charges.
	Time int64
	// Receipt is set when the charge was taken and either it was asked for or another charge of the group failed.
	Receipt Receipt
	// Err tells why this charge has no answer. Whether it was charged is then unknown; it is never retried.
	Err error
}

// Never is the RetryAfter of a charge whose cost is above its limit's capacity.
const Never time.Duration = math.MaxInt64

// Receipt names one taken charge, for Give. The zero value is no receipt.
type Receipt struct {
	// Time is the store's clock at the take, in microseconds since the Unix epoch.
	Time int64
	// ID is carried by the entries of a sliding log.
	ID uint64
}

// Key is what a limit counts by: the rule, and the values of the dimensions in the rule's key.
// Stores encode it; nothing in it is ever a Redis key by itself.
type Key struct {
	Namespace string
	Rule      string
	Parts     []Part
}

// Part is one dimension's value. IP is set for the dimension "ip", Value for all others.
type Part struct {
	Dimension Dimension
	Value     string
	IP        netip.Addr
}

// Dimension is something a rule can count by or match on: one of the constants below, or any other name for
// an attribute of the request.
type Dimension string

// The dimensions every request has a field for. Any other name is looked up in Request.Attributes.
const (
	Tenant Dimension = "tenant"
	User   Dimension = "user"
	APIKey Dimension = "api_key"
	IP     Dimension = "ip"
	Route  Dimension = "route"
	Method Dimension = "method"
)

// Anchor returns the index of the part that decides on which shard the counter lives: the first of api_key, user,
// tenant, ip, attribute. Rules anchored on one subject so share a shard and are one atomic step. Without such a
// part it returns -1, and the rule itself is the anchor.
func (k Key) Anchor() int {
	best, rank := -1, len(anchorOrder)
	for i := range k.Parts {
		if r := anchorRank(k.Parts[i].Dimension); r < rank {
			best, rank = i, r
		}
	}
	return best
}

var anchorOrder = [...]Dimension{APIKey, User, Tenant, IP, "attribute"}

func anchorRank(d Dimension) int {
	switch d {
	case APIKey:
		return 0
	case User:
		return 1
	case Tenant:
		return 2
	case IP:
		return 3
	case Route, Method:
		return len(anchorOrder)
	default:
		return 4
	}
}
