package testredis

import (
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestSingle_AnswersAndIsGoneAfterTheTest(t *testing.T) {
	t.Parallel()
	var pid int
	t.Run("use", func(t *testing.T) {
		s := Single(t, Options{Config: []string{"--maxmemory", "10mb"}})
		pid = s.PID()
		wantReply(t, s, "PONG", "PING")
		wantReply(t, s, []any{"maxmemory", "10485760"}, "CONFIG", "GET", "maxmemory")
		if _, err := s.Do("NONSENSE"); !errors.As(err, new(ReplyError)) {
			t.Errorf("NONSENSE: error %v, want a ReplyError", err)
		}
	})
	if err := gone(pid); err != nil {
		t.Error(err)
	}
}

func TestSingle_ManyStartSideBySide(t *testing.T) {
	t.Parallel()
	const count = 8
	servers := make([]*Server, count)
	p := Program()
	defer p.Close()
	var wg sync.WaitGroup
	for i := range servers {
		wg.Go(func() { servers[i] = Single(p, Options{}) })
	}
	wg.Wait()
	seen := map[string]bool{}
	for i, s := range servers {
		if seen[s.Addr()] {
			t.Errorf("server %d shares the address %s", i, s.Addr())
		}
		seen[s.Addr()] = true
		wantReply(t, s, "PONG", "PING")
	}
	p.Close()
	for _, s := range servers {
		if err := gone(s.PID()); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("directory %s after Close: %v, want none", s.dir, err)
		}
	}
}

func TestSingle_ReportsWhyItDoesNotStart(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		opts Options
		want string
	}{
		{"no binary", Options{Binary: "no-such-redis"}, "no-such-redis not found: run make deps"},
		{"bad option", Options{Config: []string{"--no-such-option", "1"}}, "no-such-option"},
		{"bad option, clock", Options{MovableClock: true, Config: []string{"--maxmemory", "many"}}, "argument must be a memory value"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := fatalOf(t, func(tb TB) { Single(tb, tc.opts) })
			if !strings.Contains(got, tc.want) {
				t.Errorf("%+v: Fatalf said %q, want it to hold %q", tc.opts, got, tc.want)
			}
		})
	}
}

func TestServer_NoticesThatItsPortIsTaken(t *testing.T) {
	t.Parallel()
	other := Single(t, Options{}) // it answers PING and INFO, as ours would
	s := newBed(t, Options{}).dataServer()
	s.port = other.Port()
	if err := s.launch(s.port); !errors.Is(err, errPortTaken) {
		t.Errorf("launch on the port of another server: %v, want %v", err, errPortTaken)
	}
	if err := gone(s.PID()); err != nil {
		t.Error(err)
	}
	wantReply(t, other, "PONG", "PING")
}

func TestServer_RestartKeepsThePortAndLosesTheData(t *testing.T) {
	t.Parallel()
	s := Single(t, Options{})
	addr, pid := s.Addr(), s.PID()
	for _, end := range []struct {
		name string
		do   func()
	}{{"Kill", s.Kill}, {"Stop", s.Stop}, {"nothing", func() {}}} {
		wantReply(t, s, "OK", "SET", "k", "v")
		end.do()
		s.Restart()
		if err := gone(pid); err != nil {
			t.Errorf("after %s: %v", end.name, err)
		}
		if pid = s.PID(); s.Addr() != addr {
			t.Errorf("after %s: address %s, want %s", end.name, s.Addr(), addr)
		}
		wantReply(t, s, nil, "GET", "k")
	}
	s.Kill()
	s.Kill() // of a dead server: nothing
	if _, err := s.Do("PING"); err == nil {
		t.Error("PING of a killed server: no error")
	}
}

func TestServer_PausedKeepsConnectionsAndSilence(t *testing.T) {
	t.Parallel()
	s := Single(t, Options{})
	wantReply(t, s, "OK", "SET", "k", "v")
	s.Pause()
	var timeout net.Error
	if _, err := call(s.Addr(), 50*time.Millisecond, "PING"); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("PING of a paused server: %v, want a timeout", err)
	}
	s.Resume()
	wantReply(t, s, "v", "GET", "k")

	s.Pause()
	s.Stop() // wakes it up to let it go
	if err := gone(s.PID()); err != nil {
		t.Error(err)
	}
	if got := fatalOf(t, func(tb TB) { s.tb = tb; s.Pause() }); got == "" {
		t.Error("Pause of a dead server: no complaint")
	}
}
