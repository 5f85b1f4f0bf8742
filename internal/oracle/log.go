package oracle

import (
	"fmt"

	"github.com/sluicehq/sluice"
)

// Log is everything some processes asked of a store and were told, in no particular order except that the charges of
// one group stand together.
type Log struct {
	Counters  []Counter
	Charges   []Charge
	Givebacks []Giveback
}

// Counter is one key of the store and the limit it counts for. The limit must not change during a log.
type Counter struct {
	// Key is the name under which the store keeps it.
	Key string
	// Shard tells counters apart that one step of the store cannot touch together: in a Cluster the slot, else 0.
	Shard uint16
	Limit sluice.Limit
}

// Charge is what one group asked of one counter, and the answer.
type Charge struct {
	Group   GroupID
	Counter int32 // index in Log.Counters
	Mode    sluice.Mode
	// Passed is this limit's own verdict, Allowed that of the whole group.
	Passed, Allowed bool
	// Shadow charges refuse nothing.
	Shadow bool
	// Lost: no answer came, so nobody knows whether it was charged.
	Lost bool
	// OneShard: one step of the store decided the whole group.
	OneShard bool
	// Time is the store's clock when it decided, Called and Returned the caller's around the call; all in µs.
	Time, Called, Returned int64
	Cost                   int64
	// Remaining is the number of units the store said it left behind.
	Remaining int64

	effect effect // what the store must have done with it; set by Check
}

// Giveback is one charge returned to a counter, because another shard refused the group.
type Giveback struct {
	Counter int32
	Lost    bool
	// Taken is the store time of the charge it returns, Time that of the return.
	Taken, Time      int64
	Called, Returned int64
	Cost, Back       int64 // what was to come back and what did, in the store's own measure: ticks for token buckets

	matched bool // to a charge; set by Check
}

// GroupID names a group: the process that asked, and its how-manieth group it was.
type GroupID uint64

const sequenceBits = 40

// NewGroupID puts an id together. Processes count from 0 to 2^24-1, sequences to 2^40-1.
func NewGroupID(process uint32, sequence uint64) GroupID {
	return GroupID(uint64(process)<<sequenceBits | sequence)
}

// String returns process and sequence: "3/1207".
func (g GroupID) String() string { return fmt.Sprintf("%d/%d", g>>sequenceBits, g&(1<<sequenceBits-1)) }

// Add appends another process's log about the same counters.
func (l *Log) Add(other *Log) error {
	if l.Counters == nil {
		l.Counters = other.Counters
	}
	if len(l.Counters) != len(other.Counters) {
		return fmt.Errorf("logs of %d and of %d counters do not belong together", len(l.Counters), len(other.Counters))
	}
	for i := range l.Counters {
		if l.Counters[i] != other.Counters[i] {
			return fmt.Errorf("counter %d is %+v in one log and %+v in another", i, l.Counters[i], other.Counters[i])
		}
	}
	l.Charges = append(l.Charges, other.Charges...)
	l.Givebacks = append(l.Givebacks, other.Givebacks...)
	return nil
}
