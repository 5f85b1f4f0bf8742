package testredis

import (
	"errors"
	"os/exec"
	"path/filepath"
	"sync"
)

// bed is what the servers of one set share: the program, the options and the clock.
type bed struct {
	tb     TB
	opts   Options // defaults applied
	binary string  // resolved
	clock  *Clock  // nil without Options.MovableClock
}

// newBed resolves the program and makes the clock; it ends the test when either is not to be had.
func newBed(tb TB, opts Options) *bed {
	tb.Helper()
	b := &bed{tb: tb, opts: opts.withDefaults()}
	var err error
	if b.binary, err = exec.LookPath(b.opts.Binary); err != nil {
		tb.Fatalf("%s not found: run make deps", b.opts.Binary)
	}
	if b.opts.MovableClock {
		if b.clock, err = newClock(tb, filepath.Join(tb.TempDir(), "clock")); err != nil {
			tb.Fatalf("testredis: make the movable clock: %v", err)
		}
	}
	return b
}

// dataServer prepares a server that holds data. args go between our own arguments and
// Options.Config, so that Config has the last word.
func (b *bed) dataServer(args ...string) *Server {
	s := newServer(b.tb, b.binary)
	s.clock = b.clock
	s.args = []string{
		"--dir", s.dir,
		"--bind", "127.0.0.1", "--protected-mode", "no",
		"--save", "", "--appendonly", "no",
		// Redis 7 waits five seconds for more replicas before a full sync.
		"--repl-diskless-sync-delay", "0",
	}
	if b.clock != nil {
		s.args = append(s.args,
			// Replication counts silence in wall clock seconds: a jump would cut every link.
			"--repl-timeout", "2147483647",
			// jemalloc's thread sleeps until a wall clock instant; with the clock set back
			// that instant has passed, and the thread spins.
			"--jemalloc-bg-thread", "no")
	}
	s.args = append(s.args, args...)
	s.args = append(s.args, b.opts.Config...)
	return s
}

// startAll starts the servers side by side and returns when all answer or one cannot be started.
func startAll(servers []*Server) error {
	errs := make([]error, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() { errs[i] = s.start() })
	}
	wg.Wait()
	return errors.Join(errs...)
}
