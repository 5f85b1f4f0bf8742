package testredis

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// orphanMode names the variable that makes this binary start a server and then end badly.
const orphanMode = "SLUICE_TESTREDIS_ORPHAN"

// playOrphan starts a server, prints its pid and ends without any clean-up.
func playOrphan(mode string) {
	s := Single(Program(), Options{})
	fmt.Println(s.PID())
	if mode == "panic" {
		panic("as the test asked")
	}
	_, _ = os.Stdin.Read(make([]byte, 1)) // for ever: the parent holds the other end and kills
	os.Exit(1)
}

func TestServer_DiesWithItsProcess(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"panic", "kill"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), orphanMode+"="+mode, "TMPDIR="+t.TempDir())
			if _, err := cmd.StdinPipe(); err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, readErr := bufio.NewReader(out).ReadString('\n')
			if mode == "kill" {
				_ = cmd.Process.Kill()
			}
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) {
				t.Errorf("the program ended with %v, want it to end badly", err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil {
				t.Fatalf("the program printed %q (%v), want a pid", line, readErr)
			}
			waitFor(t, func() error { return gone(pid) })
		})
	}
}

// The kernel sends the death signal when the starting thread ends, and the Go runtime ends a
// thread when a goroutine that is locked to it returns.
func TestServer_OutlivesTheThreadThatAskedForIt(t *testing.T) {
	t.Parallel()
	var s *Server
	tid := onDyingThread(func() { s = Single(t, Options{}) })
	if s == nil {
		t.Fatal("the server did not start")
	}
	waitFor(t, func() error {
		if _, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", tid)); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("thread %d is still there: %v", tid, err)
		}
		return nil
	})
	wantReply(t, s, "PONG", "PING")
}

// onDyingThread runs fn on a thread that ends thereafter, and returns the thread's id.
func onDyingThread(fn func()) int {
	tids := make(chan int)
	go func() {
		runtime.LockOSThread() // and never unlocked, which is what ends the thread
		tid := syscall.Gettid()
		if tid == os.Getpid() { // the first thread never ends: hold it, so that the next try gets another
			tid = onDyingThread(fn)
		} else {
			fn()
		}
		tids <- tid
	}()
	return <-tids
}
