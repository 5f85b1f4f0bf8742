package sluice

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"time"
)

// Decision is the answer to a Request and its reasons. It is a value; the rules its results point to must not be modified.
type Decision struct {
	// ID names this decision in logs and answers.
	ID DecisionID
	// Allowed is the verdict.
	Allowed bool
	// Cause tells what decided when no limit did.
	Cause Cause
	// Mode is the weakest of the results' modes.
	Mode Mode
	// Cost is the number of units the request asked for.
	Cost int64
	// Delay is how long to hold an allowed request that a throttling rule let through early.
	Delay time.Duration
	// RetryAfter is how long to wait before a refused request can pass; Never when it cannot.
	RetryAfter time.Duration
	// Revision is that of the rule set that decided.
	Revision Revision
	// StoreErr is why the store did not answer, for logs; nil when it did.
	StoreErr error

	blocked *BlockedSubject
	count   int
	first   [inlineResults]Result
	more    []Result // all of them, when they are too many for first
}

// inlineResults is how many results a decision carries without allocating. A request rarely meets more limits; each
// adds a hundred bytes to every copy of a decision.
const inlineResults = 4

// Result is what one limit of one rule said.
type Result struct {
	// Rule is the rule as compiled, defaults filled in.
	Rule *Rule
	// Limit is the limit in force for this subject. It is zero for the actions Allow and Block.
	Limit   Limit
	Allowed bool
	Mode    Mode
	// Remaining, ResetAfter and RetryAfter are as in State.
	Remaining  int64
	ResetAfter time.Duration
	RetryAfter time.Duration

	cost    int64
	route   string
	receipt Receipt
}

// Enforced tells that the result can refuse the request.
func (r *Result) Enforced() bool {
	return r.Rule.Action == Reject || r.Rule.Action == Throttle || r.Rule.Action == Block
}

// Cause tells what decided when no limit did.
type Cause uint8

// The causes.
const (
	// ByLimits: the limits of the rules that matched decided.
	ByLimits Cause = iota
	// NoRule: no rule with a limit matched.
	NoRule
	// Disabled: the limiter is switched off and passes everything.
	Disabled
	// Exempted: the subject is exempt from all rules.
	Exempted
	// BlockedByList: the subject is blocked.
	BlockedByList
	// BlockedByRule: a rule with the action Block matched.
	BlockedByRule
)

// DecisionID is unique among all nodes.
type DecisionID struct{ node, sequence uint64 }

// String returns the id as 32 hexadecimal digits.
func (id DecisionID) String() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], id.node)
	binary.BigEndian.PutUint64(b[8:], id.sequence)
	return hex.EncodeToString(b[:])
}

// Results returns what each limit said, in the order of the layers. The slice is valid as long as d is.
func (d *Decision) Results() []Result {
	if d.more != nil {
		return d.more
	}
	return d.first[:d.count]
}

func (d *Decision) add(r Result) {
	switch {
	case d.more != nil:
		d.more = append(d.more, r)
	case d.count < inlineResults:
		d.first[d.count] = r
	default:
		d.more = append(append(make([]Result, 0, 2*inlineResults), d.first[:]...), r)
	}
	d.count++
}

// Tightest returns the enforced result that a client should hear of: of those that refused, the one to wait longest
// for; else the one with the smallest share left. It returns nil when no limit was enforced.
func (d *Decision) Tightest() *Result {
	var tightest *Result
	results := d.Results()
	for i := range results {
		r := &results[i]
		if r.Enforced() && r.Limit.Limit > 0 && (tightest == nil || r.tighterThan(tightest)) {
			tightest = r
		}
	}
	return tightest
}

func (r *Result) tighterThan(o *Result) bool {
	switch {
	case r.Allowed != o.Allowed:
		return !r.Allowed
	case !r.Allowed:
		return r.RetryAfter > o.RetryAfter
	}
	return share(r) < share(o)
}

func share(r *Result) float64 { return float64(r.Remaining) / float64(r.Limit.Capacity()) }

// Reason tells the verdict and what led to it in a sentence, for people who operate the limiter. It names rules; what
// clients may read is built by the doors.
func (d *Decision) Reason() string {
	switch d.Cause {
	case NoRule:
		return "allowed: no rule with a limit matches"
	case Disabled:
		return "allowed: the limiter is switched off"
	case Exempted:
		return "allowed: the subject is exempt"
	case BlockedByList:
		return "refused: the subject is blocked: " + d.blocked.Reason
	case BlockedByRule:
		return fmt.Sprintf("refused: rule %q blocks such requests", d.Results()[0].Rule.Name)
	}
	t := d.Tightest()
	switch {
	case t == nil && d.count == 0: // a remote limiter's client made it
		return "allowed: the limiter does not answer (" + d.Mode.String() + ")"
	case t == nil:
		return "allowed: only shadow rules match" + d.modeNote()
	case d.Allowed && d.Delay > 0:
		return fmt.Sprintf("allowed after %s: rule %q is ahead of %s%s", d.Delay, t.Rule.Name, t.Limit, d.modeNote())
	case d.Allowed:
		return fmt.Sprintf("allowed: rule %q has %d of %s left%s", t.Rule.Name, t.Remaining, t.Limit, d.modeNote())
	case t.Mode == Closed:
		return fmt.Sprintf("refused: rule %q refuses while the counter store does not answer", t.Rule.Name)
	case t.RetryAfter == Never:
		return fmt.Sprintf("refused: a cost of %d is above what rule %q ever admits: %s", t.cost, t.Rule.Name, t.Limit)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "refused: rule %q has %d of %s left, %d asked for, retry in %s", t.Rule.Name, t.Remaining, t.Limit, t.cost, roundUp(t.RetryAfter))
	b.WriteString(d.modeNote())
	return b.String()
}

func (d *Decision) modeNote() string {
	switch d.Mode {
	case Exact, Leased:
		return ""
	case Local:
		return " (local: the counter store does not answer, this node's share decided)"
	case Open:
		return " (open: the counter store does not answer)"
	default:
		return " (closed: the counter store does not answer)"
	}
}

// roundUp shows a wait to the millisecond, never shorter than it is.
func roundUp(d time.Duration) time.Duration {
	if d > math.MaxInt64-time.Millisecond {
		return d
	}
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}
