package testredis

import (
	"fmt"
	"os"
	"sync"
)

// Main is a TB for a program that is not a test, such as a benchmark. Close it before leaving:
// servers die with the process in any case, but their directories stay behind without it.
// Safe for concurrent use.
type Main struct {
	mu       sync.Mutex
	cleanups []func()
}

// Program returns a TB for a program:
//
//	p := testredis.Program()
//	defer p.Close()
//	c := testredis.Cluster(p, testredis.Options{NoReplicas: true})
func Program() *Main { return &Main{} }

// Close stops everything started with m, newest first. A second call does nothing.
func (m *Main) Close() {
	for f := m.pop(); f != nil; f = m.pop() {
		f()
	}
}

// pop takes the newest clean-up off the list, so that one may register another.
func (m *Main) pop() func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.cleanups) == 0 {
		return nil
	}
	last := len(m.cleanups) - 1
	f := m.cleanups[last]
	m.cleanups = m.cleanups[:last]
	return f
}

// Cleanup registers f to be called by Close.
func (m *Main) Cleanup(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cleanups = append(m.cleanups, f)
}

// TempDir returns a new directory that Close removes.
func (m *Main) TempDir() string {
	dir, err := os.MkdirTemp("", "sluice-testredis-")
	if err != nil {
		m.Fatalf("make a directory: %v", err)
	}
	m.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			m.Logf("remove a directory: %v", err)
		}
	})
	return dir
}

// Logf writes a line to standard error.
func (m *Main) Logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

// Fatalf writes a line to standard error, closes m and leaves the program with status 1.
func (m *Main) Fatalf(format string, args ...any) {
	m.Logf(format, args...)
	m.Close()
	os.Exit(1)
}

// Helper does nothing; a program has no failure lines to attribute.
func (m *Main) Helper() {}
