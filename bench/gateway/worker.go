package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/sluicehq/sluice/internal/testredis"
)

// part is what a worker process is told.
type part struct {
	Role     string // upstream, bare or gateway
	Upstream string // host:port
	Redis    string // host:port
	Profile  string // a file; empty: none
}

// counted is what a worker tells at its end.
type counted struct{ All, Exact int64 }

// worker is a process of this bar.
type worker struct {
	addr  string
	stdin io.Closer
	out   *bufio.Reader
	done  chan struct{}
}

// startWorker starts this program again for one part, and returns when it listens.
func startWorker(p *testredis.Main, job part) (*worker, error) {
	text, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "-worker", string(text))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w := &worker{stdin: in, out: bufio.NewReader(out), done: make(chan struct{})}
	if err := w.run(cmd); err != nil {
		return nil, err
	}
	p.Cleanup(func() { _, _ = w.end() })
	if _, err := fmt.Fscanln(w.out, &w.addr); err != nil {
		return nil, fmt.Errorf("worker %s: %w", job.Role, err)
	}
	return w, nil
}

// run starts the process from a thread that lives as long as it: to the kernel, that thread is its parent.
func (w *worker) run(cmd *exec.Cmd) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		started <- cmd.Start()
		_, _ = cmd.Process.Wait() // Wait of cmd would close the pipe that its last words come through
		close(w.done)
	}()
	return <-started
}

// end stops the worker and returns what it counted. A second call returns zeros.
func (w *worker) end() (counted, error) {
	var c counted
	_ = w.stdin.Close() // it ends when its input does
	if err := json.NewDecoder(w.out).Decode(&c); err != nil && !errors.Is(err, io.EOF) {
		return c, err
	}
	<-w.done
	return c, nil
}
