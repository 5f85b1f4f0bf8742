package testredis

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// Clock is the wall clock of the servers of one set. It starts as the machine's clock; Set and
// Advance shift it and it runs on from there, Freeze makes it stand still at one microsecond until
// it is moved again or thawed. Timers inside Redis do not follow: they stand on the monotonic clock.
//
// A move is seen by the next command, by TIME and by expiry alike, and nothing needs to be sent
// in between: Redis caches its clock, but takes it anew before each command that a client sends
// (TestClock_IsSeenByTheVeryNextCommand holds it to that). Within one command or script that
// runs while the clock moves, either time may be seen.
//
// A clock may be moved while servers run and from several goroutines.
type Clock struct {
	tb   TB
	path string // of the page
	shim string // the library that makes a server read the page

	mu   sync.Mutex
	page *clockPage
}

// clockPage is the memory shared with the servers; clockshim.c has the other side. Each word is
// stored atomically, and each move is one store, or two in an order that shows no third time.
type clockPage struct {
	offset atomic.Int64 // microseconds added to real time
	frozen atomic.Int64 // microseconds since 1970 to stay at; 0: the clock runs
}

// newClock makes a clock whose page is the file at path. It is unmapped when the test ends.
func newClock(tb TB, path string) (*Clock, error) {
	shim, err := buildShim()
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := os.Getpagesize()
	if err := f.Truncate(int64(size)); err != nil {
		return nil, err
	}
	mem, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	c := &Clock{tb: tb, path: path, shim: shim, page: (*clockPage)(unsafe.Pointer(&mem[0]))}
	tb.Cleanup(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.page = new(clockPage) // a late call moves nothing, rather than fault
		_ = syscall.Munmap(mem)
	})
	return c, nil
}

// Now returns the time that a server shows, in whole microseconds.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.UnixMicro(c.micros())
}

// Set moves the clock to t, to the microsecond: a running clock runs on from there, a frozen one
// stands there.
func (c *Clock) Set(t time.Time) { c.tb.Helper(); c.SetMicros(t.UnixMicro()) }

// SetMicros is Set in microseconds since 1970, the unit of Redis's TIME.
func (c *Clock) SetMicros(us int64) {
	c.tb.Helper()
	c.move(us, func() {
		if c.page.frozen.Load() != 0 {
			c.page.frozen.Store(us)
		} else {
			c.page.offset.Store(us - time.Now().UnixMicro())
		}
	})
}

// Advance moves the clock by d, back when d is negative. What is below a microsecond is cut off.
func (c *Clock) Advance(d time.Duration) {
	c.tb.Helper()
	c.move(c.Now().Add(d).UnixMicro(), func() {
		if c.page.frozen.Load() != 0 {
			c.page.frozen.Add(d.Microseconds())
		} else {
			c.page.offset.Add(d.Microseconds()) // exactly d, however long the call takes
		}
	})
}

// Freeze makes the clock stand at the given time, to the microsecond, for traces that must come
// out the same on every run. A cluster master that is restarted under a frozen clock serves only
// after the clock has moved on by two seconds.
func (c *Clock) Freeze(at time.Time) {
	c.tb.Helper()
	c.move(at.UnixMicro(), func() { c.page.frozen.Store(at.UnixMicro()) })
}

// Thaw lets a frozen clock run on from where it stands. It does nothing to a running one.
func (c *Clock) Thaw() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.page.frozen.Load(); at != 0 {
		c.page.offset.Store(at - time.Now().UnixMicro())
		c.page.frozen.Store(0)
	}
}

// move runs store under the lock if the clock can show the time it is moved to.
func (c *Clock) move(to int64, store func()) {
	c.tb.Helper()
	if to <= 0 { // 0 is "not frozen", and Redis does not work before 1970 either
		c.tb.Fatalf("testredis: clock moved to %v: must be after 1970", time.UnixMicro(to).UTC())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	store()
}

// micros is Now for those who hold the lock.
func (c *Clock) micros() int64 {
	if at := c.page.frozen.Load(); at != 0 {
		return at
	}
	return time.Now().UnixMicro() + c.page.offset.Load()
}

// env returns what a server's environment needs to run under the clock; nothing on a nil Clock.
func (c *Clock) env() []string {
	if c == nil {
		return nil
	}
	return []string{"LD_PRELOAD=" + c.shim, "SLUICE_TESTREDIS_CLOCK=" + c.path}
}

// loadedBy checks that the process has mapped the page: a statically linked server ignores
// LD_PRELOAD without a word, and then every test of time would test nothing.
func (c *Clock) loadedBy(pid int) error {
	if c == nil {
		return nil
	}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return err
	}
	if !bytes.Contains(maps, []byte(c.path)) {
		return fmt.Errorf("process %d does not use the movable clock: is the server statically linked?", pid)
	}
	return nil
}
