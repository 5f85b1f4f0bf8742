// Package testredis starts real redis-server processes on free loopback ports, for tests and for
// benchmark programs: one server, a Sentinel set or a cluster, ready to use when the call returns
// and gone when the test ends, however it ends.
//
//	r := testredis.Single(t, testredis.Options{})
//	r.Do("SET", "k", "v")
//
// The servers are the test's own, so it may kill, pause and restart them, and with
// Options.MovableClock set their clock. A program that is not a test passes Program() for t.
//
// Linux only: it leans on PR_SET_PDEATHSIG, /proc and LD_PRELOAD.
package testredis

import (
	"os/exec"
	"slices"
	"time"
)

// TB is what this package needs of a testing.TB. Every testing.TB is one; Main is one for programs.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
	TempDir() string
}

// Options says how servers are started. The zero value works.
type Options struct {
	// Binary is the server program, a name to find in PATH or a path. Default: redis-server.
	Binary string
	// MovableClock runs the data servers of the set under one clock that the test moves; see
	// Clock. Sentinels keep the real clock: they judge silence, and a jump sends them into tilt.
	// Default: the machine's clock.
	MovableClock bool
	// NodeTimeout is the silence after which cluster nodes hold a node for failed; failover takes
	// about 1.3 s longer. A much shorter one risks failovers nobody asked for on a busy machine.
	// Default: 1 s, or ten years with MovableClock, where each jump would look like silence.
	NodeTimeout time.Duration
	// DownAfter is the silence after which a sentinel holds the master for down. Default: 1 s.
	DownAfter time.Duration
	// NoReplicas makes a cluster of three masters only, for benchmarks. Default: a replica each.
	NoReplicas bool
	// Config is added to the command line of data servers, after our own arguments and so
	// stronger: "--maxmemory", "10mb". Default: none.
	Config []string
}

// neverFails is the node timeout under a movable clock. Redis keeps it in int64 milliseconds and
// doubles it in places, so the largest duration would overflow.
const neverFails = 10 * 365 * 24 * time.Hour

// withDefaults returns a copy with every field set.
func (o Options) withDefaults() Options {
	if o.Binary == "" {
		o.Binary = "redis-server"
	}
	if o.NodeTimeout == 0 {
		o.NodeTimeout = time.Second
		if o.MovableClock {
			o.NodeTimeout = neverFails
		}
	}
	if o.DownAfter == 0 {
		o.DownAfter = time.Second
	}
	o.Config = slices.Clone(o.Config)
	return o
}

// Single starts one server and returns when it answers. It ends the test if the server does not start.
func Single(tb TB, opts Options) *Server {
	tb.Helper()
	bed := newBed(tb, opts)
	s := bed.dataServer()
	if err := s.start(); err != nil {
		tb.Fatalf("testredis: start %s: %v", bed.opts.Binary, err)
	}
	return s
}

// HasValkey reports whether valkey-server is installed. Unlike redis-server it is no requirement,
// so a test of it may skip.
func HasValkey() bool {
	_, err := exec.LookPath("valkey-server")
	return err == nil
}
