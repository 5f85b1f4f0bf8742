package testredis

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Server is one redis-server process of the test's own. It is killed when the test ends.
// Its methods may be called from any goroutine, except that Kill, Pause, Resume, Stop and Restart
// end the test when they cannot do their work and so, like Fatalf, belong to the test's own.
type Server struct {
	tb     TB
	binary string
	args   []string // without the port, which start picks
	dir    string
	bus    bool   // a cluster node, which needs a second port
	clock  *Clock // nil: the machine's
	port   int    // fixed by the first start

	mu   sync.Mutex
	proc *process // nil before the first start
}

const (
	// startTries is how often a start that found its port taken is tried with another.
	// It takes two processes picking one of 10,000 ports within milliseconds, so ten in a row
	// is something else.
	startTries = 10
	// readyLimit is how long a server or a set may take to be ready. They take 20 ms to 2 s;
	// this only decides how soon a hopeless start on an overloaded machine is reported.
	readyLimit = 30 * time.Second
	// stopLimit is how long Stop waits for a graceful end.
	stopLimit = 5 * time.Second
)

// newServer prepares a server in a directory of its own and sees to its end; start starts it.
func newServer(tb TB, binary string) *Server {
	s := &Server{tb: tb, binary: binary, dir: tb.TempDir()}
	tb.Cleanup(s.Kill)
	return s
}

// Addr returns the address, such as "127.0.0.1:12345". It stays the same over a Restart.
func (s *Server) Addr() string { return loopback(s.port) }

// Port returns the port. It stays the same over a Restart.
func (s *Server) Port() int { return s.port }

// PID returns the id of the newest process, which may be dead.
func (s *Server) PID() int { return s.process().pid() }

// Clock returns the clock, shared by all servers of a set. It is nil without Options.MovableClock.
func (s *Server) Clock() *Clock { return s.clock }

// Do runs one command on a connection of its own, so SELECT and MULTI reach no further than their
// call. It returns int64, string, []any or nil, or the error: a ReplyError when Redis refused.
// It takes at most five seconds.
func (s *Server) Do(args ...string) (any, error) {
	v, err := call(s.Addr(), doTimeout, args...)
	if err != nil {
		return nil, fmt.Errorf("%s at %s: %w", strings.Join(args[:min(2, len(args))], " "), s.Addr(), err)
	}
	return v, nil
}

// Kill ends the process with SIGKILL, paused or not, and returns when it is gone.
// Killing a dead server does nothing.
func (s *Server) Kill() {
	s.tb.Helper()
	p := s.process()
	if p == nil {
		return
	}
	if err := p.kill(); err != nil {
		s.tb.Fatalf("testredis: kill %s: %v", s.Addr(), err)
	}
}

// Stop lets the server shut down by SIGTERM and returns when it is gone. A server that takes
// longer than five seconds is killed.
func (s *Server) Stop() {
	s.tb.Helper()
	p := s.process()
	// A paused process sees SIGTERM only once it goes on.
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT} {
		if err := p.signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			s.tb.Fatalf("testredis: stop %s: %v", s.Addr(), err)
		}
	}
	select {
	case <-p.done:
	case <-time.After(stopLimit):
		s.Kill()
	}
}

// Pause stops the process with SIGSTOP, as a hung machine would be: connections stay open and
// nothing answers. It returns when the process stands still.
func (s *Server) Pause() {
	s.tb.Helper()
	p := s.process()
	err := p.signal(syscall.SIGSTOP)
	if err == nil {
		err = poll(stopLimit, p.done, func() error {
			if state, err := processState(p.pid()); err != nil || state != 'T' {
				return fmt.Errorf("process %d is in state %q (%s)", p.pid(), state, fmt.Sprint(err))
			}
			return nil
		})
	}
	if err != nil {
		s.tb.Fatalf("testredis: pause %s: %v", s.Addr(), err)
	}
}

// Resume lets a paused server go on.
func (s *Server) Resume() {
	s.tb.Helper()
	if err := s.process().signal(syscall.SIGCONT); err != nil {
		s.tb.Fatalf("testredis: resume %s: %v", s.Addr(), err)
	}
}

// Restart kills the server if it still runs and starts it again on the same port, without its
// data. A cluster node and a sentinel keep their identity and what they knew of the others.
func (s *Server) Restart() {
	s.tb.Helper()
	s.Kill()
	if err := s.launch(s.port); err != nil {
		s.tb.Fatalf("testredis: restart %s: %v", s.Addr(), err)
	}
}

// process returns the newest process, nil before the first start.
func (s *Server) process() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc
}

// responsive reports whether the server is neither dead nor paused, so that asking it is worth while.
func (s *Server) responsive() bool {
	p := s.process()
	if !p.running() {
		return false
	}
	state, err := processState(p.pid())
	return err == nil && state != 'T'
}

// start picks a port and launches the server on it, again with another when it was taken meanwhile.
func (s *Server) start() error {
	var err error
	for range startTries {
		if s.port, err = freePort(s.bus); err != nil {
			return err
		}
		if err = s.launch(s.port); !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return err
}

// launch starts the process on the port and waits until it answers. On error no process is left,
// and the error shows the end of the log.
func (s *Server) launch(port int) error {
	log, err := os.OpenFile(s.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	info, err := log.Stat()
	if err != nil {
		return err
	}
	p, err := startProcess(s.binary, s.argv(port), s.clock.env(), log)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.proc = p
	s.mu.Unlock()

	err = poll(readyLimit, p.done, func() error { return s.answersAs(p.pid()) })
	if err == nil {
		err = s.clock.loadedBy(p.pid())
	}
	if err == nil {
		return nil
	}
	if killErr := p.kill(); killErr != nil {
		return errors.Join(err, killErr)
	}
	tail := s.logSince(info.Size())
	if strings.Contains(tail, "Address already in use") {
		err = errPortTaken
	}
	return fmt.Errorf("%s on port %d: %w; its log ends:\n%s", s.binary, port, err, tail)
}

// argv adds the port at the end: a sentinel's first argument must be its configuration file.
func (s *Server) argv(port int) []string {
	return append(slices.Clone(s.args), "--port", strconv.Itoa(port))
}

// answersAs checks that the process answering on the port is ours: another one may have been
// quicker to bind it, and would answer just as well until ours gives up.
func (s *Server) answersAs(pid int) error {
	info, err := s.Do("INFO", "server")
	if err != nil {
		return err
	}
	if got := infoField(info, "process_id"); got != strconv.Itoa(pid) {
		return fmt.Errorf("port %d is answered by process %s, not by ours, %d", s.port, got, pid)
	}
	return nil
}

func (s *Server) logPath() string { return filepath.Join(s.dir, "redis.log") }

// logSince returns the last 2 KiB of what the log holds after the offset.
func (s *Server) logSince(offset int64) string {
	log, err := os.ReadFile(s.logPath())
	if err != nil {
		return err.Error()
	}
	log = log[min(offset, int64(len(log))):]
	return string(log[max(0, len(log)-2048):])
}
