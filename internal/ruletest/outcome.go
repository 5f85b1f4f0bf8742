package ruletest

import (
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

// outcome is a decision in the words of traces.
type outcome struct{ decision *sluice.Decision }

func (o outcome) verdict() string {
	if o.decision.Allowed {
		return "allow"
	}
	return "refuse"
}

// none is the value of what a decision does not have.
const none = "none"

// value returns what a decision says about a name.
func (o outcome) value(name string) string {
	kind, of, _ := strings.Cut(name, ".")
	switch kind {
	case "rule":
		return o.rule()
	case "remaining", "says":
		r := o.result(of)
		switch {
		case r == nil:
			return none
		case kind == "remaining":
			return strconv.FormatInt(r.Remaining, 10)
		case r.Allowed:
			return "allow"
		}
		return "refuse"
	case "retry":
		return wait(o.decision.RetryAfter)
	case "delay":
		return wait(o.decision.Delay)
	case "cause":
		return causes[o.decision.Cause]
	default:
		return strconv.FormatInt(o.decision.Cost, 10)
	}
}

// rule is the one that decided.
func (o outcome) rule() string {
	if r := o.decision.Tightest(); r != nil {
		return r.Rule.Name
	}
	if o.decision.Cause == sluice.BlockedByRule {
		return o.decision.Results()[0].Rule.Name
	}
	return none
}

// result returns that of a rule, of its limits the tightest, or that of the rule that decided where none is named; nil: there is none.
func (o outcome) result(rule string) *sluice.Result {
	if rule == "" {
		return o.decision.Tightest()
	}
	var found *sluice.Result
	results := o.decision.Results()
	for i := range results {
		r := &results[i]
		if r.Rule.Name != rule {
			continue
		}
		if found == nil || found.Allowed && !r.Allowed || found.Allowed == r.Allowed && r.Remaining < found.Remaining {
			found = r
		}
	}
	return found
}

// details are what most want to know of a verdict they did not expect.
func (o outcome) details() []string {
	details := []string{"cause=" + o.value("cause"), "rule=" + o.rule()}
	if o.decision.Tightest() != nil {
		details = append(details, "remaining="+o.value("remaining"))
	}
	if !o.decision.Allowed {
		details = append(details, "retry="+o.value("retry"))
	}
	return details
}

// wait writes a duration to the millisecond, never shorter than it is.
func wait(d time.Duration) string {
	if d == sluice.Never {
		return "never"
	}
	return ruledoc.Duration((d + time.Millisecond - 1).Truncate(time.Millisecond)).String()
}

// equal compares a value with the one expected, which may be written otherwise: 60s is 1m.
func equal(want field, got string) bool {
	if want.value == got {
		return true
	}
	if kind, _, _ := strings.Cut(want.name, "."); kind == "remaining" || kind == "cost" {
		a, errA := strconv.ParseInt(want.value, 10, 64)
		b, errB := strconv.ParseInt(got, 10, 64)
		return errA == nil && errB == nil && a == b
	}
	if want.name != "retry" && want.name != "delay" {
		return false
	}
	var a, b ruledoc.Duration
	return a.UnmarshalText([]byte(want.value)) == nil && b.UnmarshalText([]byte(got)) == nil && a == b
}
