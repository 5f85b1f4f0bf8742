package testpg

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Server is one PostgreSQL. Its methods may be called from any goroutine, except that Kill, Pause, Resume, Stop and Restart end the test
// when they cannot do their work and so, like Fatalf, belong to the test's own.
type Server struct {
	tb       TB // nil for the one that is shared
	as       *syscall.Credential
	dir      string // holds data and log
	config   []string
	port     int
	template string
	tls      bool
	janitor  *janitor

	mu   sync.Mutex
	proc *process
}

const (
	// startTries is how often a start that found its port taken is tried with another.
	startTries = 10
	// readyLimit only decides how soon a hopeless start is reported; it takes about 0.2 s, and more after a crash.
	readyLimit = 60 * time.Second
	stopLimit  = 20 * time.Second
	pollTick   = 10 * time.Millisecond
)

// settings are for speed and for what tests do. Nothing is forced to disk, so a power cut would lose data, but the death of a process does
// not: synchronous_commit stays on.
var settings = []string{
	"listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "full_page_writes=off", "jit=off",
	"shared_buffers=64MB", "max_connections=200", "max_wal_size=2GB", "wal_level=replica", "max_wal_senders=4", "hot_standby=on",
	"logging_collector=off", "log_min_messages=warning", "timezone=UTC",
}

// Port returns the port. It stays the same over a Restart.
func (s *Server) Port() int { return s.port }

// Addr returns the address, such as "127.0.0.1:31234".
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// PID returns the id of the newest process, which may be dead.
func (s *Server) PID() int { return s.process().cmd.Process.Pid }

// Running tells whether the process is alive, paused or not.
func (s *Server) Running() bool { return s.process().running() }

func (s *Server) url(role, database string) string {
	how := url.Values{"sslmode": {"disable"}}
	if s.tls {
		how = url.Values{"sslmode": {"verify-full"}, "sslrootcert": {s.CAFile()}}
	}
	u := url.URL{Scheme: "postgres", User: url.User(role), Host: s.Addr(), Path: database, RawQuery: how.Encode()}
	return u.String()
}

func (s *Server) process() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc
}

// launch starts the server on a free port and waits until it answers.
func (s *Server) launch() error {
	var err error
	for range startTries {
		if s.port, err = freePort(); err != nil {
			return err
		}
		if err = s.launchOn(); !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return err
}

// errPortTaken: somebody bound the port between our probe and the server's start.
var errPortTaken = errors.New("port taken")

func (s *Server) launchOn() error {
	binary, err := find("postgres")
	if err != nil {
		return err
	}
	log, err := os.OpenFile(s.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{"-D", s.data(), "-p", strconv.Itoa(s.port)}
	for _, c := range slices.Concat(settings, s.config) {
		args = append(args, "-c", c)
	}
	p, err := startProcess(binary, args, s.as, log)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.proc = p
	s.mu.Unlock()
	err = poll(readyLimit, p.done, s.answers)
	if err == nil {
		return nil
	}
	_ = p.signal(syscall.SIGQUIT)
	<-p.done
	tail := s.Log()
	if strings.Contains(tail, "Address already in use") {
		return errPortTaken
	}
	return fmt.Errorf("postgres on port %d: %w; its log ends:\n%s", s.port, err, tail)
}

// answers reports whether our own server takes connections.
func (s *Server) answers() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url(Superuser, "postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var dir string
	if err := conn.QueryRow(ctx, "SHOW data_directory").Scan(&dir); err != nil {
		return err
	}
	if dir != s.data() {
		return fmt.Errorf("port %d is answered by the server of %s", s.port, dir)
	}
	return nil
}

func (s *Server) data() string    { return filepath.Join(s.dir, "data") }
func (s *Server) logPath() string { return filepath.Join(s.dir, "log") }

// Log returns the last 4 KiB of the server's log.
func (s *Server) Log() string {
	log, err := os.ReadFile(s.logPath())
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-4096):])
}

// poll calls cond until it returns nil, and gives up after the limit or when died is closed.
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
			return errors.New("the server ended")
		case <-deadline.C:
			return fmt.Errorf("not within %v: %w", limit, err)
		case <-tick.C:
		}
	}
}
