package sluice

import (
	"errors"
	"fmt"
)

// Errors that callers branch on.
var (
	// ErrUnavailable: the store did not answer. Every store wraps its failures in it.
	ErrUnavailable = errors.New("counter store unavailable")
	// ErrSameCounter: one group charges the same counter twice, which a single step cannot check.
	ErrSameCounter = errors.New("one request charges the same counter twice: merge the charges into one")
	// ErrNeverPasses: waiting for the request cannot help, its cost is above a limit's capacity.
	ErrNeverPasses = errors.New("waiting cannot help")
	// ErrInvalidRequest: the request itself cannot be decided.
	ErrInvalidRequest = errors.New("invalid request")
)

// RuleError is one fault of one rule, or a warning about it.
type RuleError struct {
	Namespace string
	Rule      string // its name; may be empty when that is the fault
	Index     int    // position in the list handed to Compile or Validate
	Field     string // such as "limits[1].window"
	Warning   bool   // the rule works, but probably not as meant
	Err       error
}

// Error names the rule, the field and the fault.
func (e *RuleError) Error() string {
	kind := ""
	if e.Warning {
		kind = "warning: "
	}
	name := e.Rule
	if name == "" {
		name = fmt.Sprintf("#%d", e.Index+1)
	}
	if e.Field == "" {
		return fmt.Sprintf("%srule %q: %v", kind, name, e.Err)
	}
	return fmt.Sprintf("%srule %q: %s: %v", kind, name, e.Field, e.Err)
}

// Unwrap returns the cause.
func (e *RuleError) Unwrap() error { return e.Err }
