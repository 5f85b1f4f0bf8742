package testredis

import (
	"errors"
	"fmt"
	"time"
)

// pollTick is how long poll waits between two looks. A longer one is added to every start; a much
// shorter one has parallel tests spend a small machine on looking.
const pollTick = 5 * time.Millisecond

// errDied: the server that was waited for ended.
var errDied = errors.New("the server ended")

// poll calls cond until it returns nil, and gives up after the limit with cond's last error, or
// at once when died is closed. A nil died never is.
func poll(limit time.Duration, died <-chan struct{}, cond func() error) error {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(pollTick)
	defer tick.Stop()
	for {
		err := cond()
		if err == nil {
			return nil
		}
		select {
		case <-died:
			return errDied
		case <-deadline.C:
			return fmt.Errorf("not within %v: %w", limit, err)
		case <-tick.C:
		}
	}
}
