package testredis

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"reflect"
	"runtime"
	"testing"
	"time"
)

// TestMain lets the binary play the program that orphan_test.go ends by force.
func TestMain(m *testing.M) {
	if mode := os.Getenv(orphanMode); mode != "" {
		playOrphan(mode)
	}
	os.Exit(m.Run())
}

// waitFor polls until cond returns nil, and ends the test if that takes too long.
func waitFor(t *testing.T, cond func() error) {
	t.Helper()
	if err := poll(readyLimit, nil, cond); err != nil {
		t.Fatal(err)
	}
}

// gone returns an error while the process runs. A zombie is gone: whoever adopted it may take
// its time to reap it.
func gone(pid int) error {
	state, err := processState(pid)
	if errors.Is(err, os.ErrNotExist) || state == 'Z' {
		return nil
	}
	return fmt.Errorf("process %d is in state %q (%s)", pid, state, fmt.Sprint(err))
}

// wantReply runs a command and compares its reply.
func wantReply(t *testing.T, s *Server, want any, args ...string) {
	t.Helper()
	got, err := s.Do(args...)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%q = %#v, want %#v", args, got, want)
	}
}

// session is one connection that stays open.
type session struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func newSession(t *testing.T, s *Server) *session {
	t.Helper()
	conn, err := net.DialTimeout("tcp", s.Addr(), doTimeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &session{t: t, conn: conn, in: bufio.NewReader(conn)}
}

func (s *session) do(args ...string) any {
	s.t.Helper()
	if err := s.conn.SetDeadline(time.Now().Add(doTimeout)); err != nil {
		s.t.Fatal(err)
	}
	if _, err := io.WriteString(s.conn, encode(args)); err != nil {
		s.t.Fatalf("%q: %v", args, err)
	}
	reply, err := decode(s.in)
	if err != nil {
		s.t.Fatalf("%q: %v", args, err)
	}
	return reply
}

// fakeTB is a TB whose Fatalf ends only the function run on it, and keeps the words.
type fakeTB struct {
	testing.TB
	fatal string
}

func (f *fakeTB) Fatalf(format string, args ...any) {
	f.fatal = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// fatalOf returns what fn says to Fatalf, "" when it does not.
func fatalOf(t *testing.T, fn func(TB)) string {
	t.Helper()
	f := &fakeTB{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn(f)
	}()
	<-done
	return f.fatal
}
