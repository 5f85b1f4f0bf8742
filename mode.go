package sluice

import "fmt"

// Mode is how a result was made. Larger is weaker; a decision shows the weakest of its results.
type Mode uint8

// The modes, strongest first.
const (
	// Exact: the shared store decided.
	Exact Mode = iota
	// Leased: permits taken from the shared store ahead of time were spent.
	Leased
	// Local: the store did not answer, this node decided by its share of the limit.
	Local
	// Open: the store did not answer, the rule lets such requests pass.
	Open
	// Closed: the store did not answer, the rule refuses such requests.
	Closed
)

var modeNames = [...]string{"exact", "leased", "local", "open", "closed"}

// String returns the mode's name, such as "exact".
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("Mode(%d)", m)
}

// MarshalText writes the mode's name.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }
