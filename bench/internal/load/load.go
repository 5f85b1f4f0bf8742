// Package load runs closed loops of callers and tells what they did: operations, wall time, CPU of this process and of
// Redis, allocations, latencies.
package load

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sluicehq/sluice/internal/testredis"
)

// Result is what one run of a loop did.
type Result struct {
	Ops       int64
	Elapsed   time.Duration
	ClientCPU time.Duration
	RedisCPU  time.Duration
	Allocs    uint64
}

// Plus returns both runs as one.
func (r Result) Plus(o Result) Result {
	return Result{r.Ops + o.Ops, r.Elapsed + o.Elapsed, r.ClientCPU + o.ClientCPU, r.RedisCPU + o.RedisCPU, r.Allocs + o.Allocs}
}

// Rate returns operations per second.
func (r Result) Rate() float64 { return float64(r.Ops) / r.Elapsed.Seconds() }

// RedisMicros returns Redis CPU per operation in microseconds.
func (r Result) RedisMicros() float64 { return float64(r.RedisCPU.Microseconds()) / float64(r.Ops) }

// ClientMicros returns this process's CPU per operation in microseconds.
func (r Result) ClientMicros() float64 { return float64(r.ClientCPU.Microseconds()) / float64(r.Ops) }

// AllocsPerOp returns heap allocations per operation.
func (r Result) AllocsPerOp() float64 { return float64(r.Allocs) / float64(r.Ops) }

// Op does one operation; caller and n tell which.
type Op func(ctx context.Context, caller int, n int64) error

// warmUp is how many operations each caller does before the measuring starts, so that pools are filled.
const warmUp = 4

// Run lets callers loop for a time. The first error ends it.
func Run(ctx context.Context, callers int, d time.Duration, servers []*testredis.Server, op Op) (Result, error) {
	var ops atomic.Int64
	var failure atomic.Pointer[error]
	var warm, done sync.WaitGroup
	var end time.Time
	start := make(chan struct{})
	warm.Add(callers)
	for caller := range callers {
		done.Go(func() {
			do := func(n int64) bool {
				if err := op(ctx, caller, n); err != nil {
					first := err // a copy, so that only a failure allocates
					failure.CompareAndSwap(nil, &first)
				}
				return failure.Load() == nil
			}
			for n := range int64(warmUp) {
				do(n)
			}
			warm.Done()
			<-start
			n := int64(warmUp)
			for ; time.Now().Before(end) && do(n); n++ {
			}
			ops.Add(n - warmUp)
		})
	}
	warm.Wait()
	m, err := newMeter(servers)
	if err != nil {
		return Result{}, err
	}
	end = m.start.Add(d)
	close(start)
	done.Wait()
	r, err := m.read(servers)
	r.Ops = ops.Load()
	if e := failure.Load(); e != nil {
		return r, *e
	}
	return r, err
}

// meter remembers the counters at the start of a run.
type meter struct {
	start       time.Time
	client, red time.Duration
	allocs      uint64
}

func newMeter(servers []*testredis.Server) (meter, error) {
	var m meter
	var stats runtime.MemStats
	var err error
	if m.red, err = redisCPU(servers); err != nil {
		return m, err
	}
	runtime.ReadMemStats(&stats)
	m.allocs, m.client, m.start = stats.Mallocs, clientCPU(), time.Now()
	return m, nil
}

func (m meter) read(servers []*testredis.Server) (Result, error) {
	r := Result{Elapsed: time.Since(m.start), ClientCPU: clientCPU() - m.client}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	r.Allocs = stats.Mallocs - m.allocs
	red, err := redisCPU(servers)
	r.RedisCPU = red - m.red
	return r, err
}

// Latencies lets one caller do n operations and returns each one's time, sorted.
func Latencies(ctx context.Context, n int, op Op) ([]time.Duration, error) {
	times := make([]time.Duration, n)
	for i := range times {
		start := time.Now()
		if err := op(ctx, 0, int64(i)); err != nil {
			return nil, err
		}
		times[i] = time.Since(start)
	}
	slices.Sort(times)
	return times, nil
}

func clientCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func redisCPU(servers []*testredis.Server) (total time.Duration, err error) {
	for _, s := range servers {
		reply, err := s.Do("INFO", "cpu")
		if err != nil {
			return 0, err
		}
		text, ok := reply.(string)
		if !ok {
			return 0, fmt.Errorf("INFO cpu replied a %T", reply)
		}
		for _, field := range []string{"used_cpu_sys:", "used_cpu_user:"} {
			_, rest, found := strings.Cut(text, field)
			if !found {
				return 0, errors.New("INFO cpu has no " + field)
			}
			value, _, _ := strings.Cut(rest, "\r")
			seconds, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, err
			}
			total += time.Duration(seconds * float64(time.Second))
		}
	}
	return total, nil
}
