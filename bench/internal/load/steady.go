package load

import (
	"context"
	"sync"
	"time"
)

// Steady does one thing after the other at a rate per second, whatever the things take, until ctx ends; it returns when all that
// were begun are over. Askers is how many are under way at once: where all are busy, what is due waits.
func Steady(ctx context.Context, rate float64, askers int, do func(n int64)) {
	due := make(chan int64, askers)
	var wait sync.WaitGroup
	for range askers {
		wait.Go(func() {
			for n := range due {
				do(n)
			}
		})
	}
	began := time.Now()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for n := int64(0); ctx.Err() == nil; <-tick.C {
		for until := int64(time.Since(began).Seconds() * rate); n < until; n++ {
			due <- n
		}
	}
	close(due)
	wait.Wait()
}
