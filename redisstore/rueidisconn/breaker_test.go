package rueidisconn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var errDown = errors.New("down")

// newBreaker returns a breaker and how often it has opened.
func newBreaker() (b *breaker, opened *int) {
	opened = new(int)
	return &breaker{opened: func(*breaker) { *opened++ }}, opened
}

func recordAll(b *breaker, errs ...error) {
	for _, err := range errs {
		b.record(err)
	}
}

func TestBreaker_OpensAfterFailuresInARow(t *testing.T) {
	t.Parallel()
	none := fmt.Errorf("cancelled: %w", errNoVerdict)
	for _, c := range []struct {
		name string
		errs []error
		want int // times opened
	}{
		{"one fewer", []error{errDown, errDown, errDown, errDown}, 0},
		{"enough", []error{errDown, errDown, errDown, errDown, errDown}, 1},
		{"many, told once", []error{errDown, errDown, errDown, errDown, errDown, errDown, errDown, errDown, errDown, errDown, errDown}, 1},
		{"a success between", []error{errDown, errDown, errDown, errDown, nil, errDown, errDown, errDown, errDown}, 0},
		{"a success before", []error{nil, errDown, errDown, errDown, errDown, errDown}, 1},
		{"no verdicts do not count", []error{none, none, none, none, none, none, errDown, errDown, errDown, errDown}, 0},
		{"no verdicts do not reset", []error{errDown, errDown, none, errDown, errDown, none, errDown}, 1},
	} {
		b, opened := newBreaker()
		recordAll(b, c.errs...)
		if *opened != c.want || b.closed() != (c.want == 0) {
			t.Errorf("%s: got opened %d times, closed=%v, want %d", c.name, *opened, b.closed(), c.want)
		}
	}
}

func TestBreaker_OpensOnceForManyAtATime(t *testing.T) {
	t.Parallel()
	b, opened := newBreaker()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { recordAll(b, errDown, errDown, errDown) })
	}
	wg.Wait()
	if *opened != 1 {
		t.Errorf("150 failures from 50 goroutines: got opened %d times, want once", *opened)
	}
}

func TestBreaker_ProbesAtGrowingJitteredPausesUntilItCloses(t *testing.T) {
	t.Parallel()
	first := map[time.Duration]bool{}
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			b, opened := newBreaker()
			recordAll(b, errDown, errDown, errDown, errDown, errDown)
			var pauses []time.Duration
			last := time.Now()
			b.probeUntilClosed(t.Context(), func(context.Context) error {
				if b.closed() {
					t.Error("closed before a probe succeeded")
				}
				pauses = append(pauses, time.Since(last))
				last = time.Now()
				if len(pauses) < 7 {
					return errDown
				}
				return nil
			})
			if !b.closed() || len(pauses) != 7 {
				t.Fatalf("after a probe succeeded: closed=%v, %d probes, want 7", b.closed(), len(pauses))
			}
			for i, ms := range []int64{50, 100, 200, 400, 400, 400, 400} {
				want := time.Duration(ms) * time.Millisecond
				if got := pauses[i]; got < want/2 || got >= want*3/2 {
					t.Errorf("pause %d: got %v, want %v give or take a half", i, got, want)
				}
			}
			first[pauses[0]] = true

			// It starts anew: five failures to open again, one more opening.
			recordAll(b, errDown, errDown, errDown, errDown)
			if !b.closed() {
				t.Error("four failures after closing opened it")
			}
			recordAll(b, errDown)
			if b.closed() || *opened != 2 {
				t.Errorf("five failures after closing: closed=%v, opened %d times, want open, twice", b.closed(), *opened)
			}
		})
	}
	if len(first) < 2 {
		t.Errorf("20 breakers paused the same before their first probe: %v", first)
	}
}

func TestBreaker_ProbingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := newBreaker()
		recordAll(b, errDown, errDown, errDown, errDown, errDown)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start, probes := time.Now(), 0
		b.probeUntilClosed(ctx, func(context.Context) error { probes++; return errDown })
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("ended after %v, want when its context did, after 10 s", took)
		}
		if b.closed() || probes < 10 || probes > 60 {
			t.Errorf("closed=%v after %d probes in 10 s, want open and 10 to 60", b.closed(), probes)
		}
	})
}
