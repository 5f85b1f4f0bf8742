package testredis

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// process is one running child. It cannot outlive this process, whatever ends this process.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed once the child is dead and reaped
}

// startProcess starts the program with its output, both streams, appended to log.
func startProcess(binary string, args, env []string, log *os.File) (*process, error) {
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	// The kernel kills the child when its parent is gone: a panic and a SIGKILL run no clean-up.
	// In its own process group, so that a Ctrl-C at the terminal is ours to handle, not Redis's.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}

	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	// To the kernel the "parent" of Pdeathsig is the thread that forked, not the process: were
	// the child started from a thread that the Go runtime later ends (a locked goroutine
	// returned on it), the server would be shot in the middle of a test. So each child gets a
	// goroutine that owns its thread and stays on it, in wait, for as long as the child lives.
	// It ends when the child does; kill waits for that through done.
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how the child died is in its log
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// running reports whether the child is alive, stopped or not.
func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// signal sends sig; errors.Is(err, os.ErrProcessDone) when the child is dead. It cannot hit
// another process that got the same pid: os.Process holds a pidfd, or knows that it was reaped.
func (p *process) signal(sig syscall.Signal) error { return p.cmd.Process.Signal(sig) }

// kill ends the child, also a stopped one, and returns when it has been reaped.
func (p *process) kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return nil
}

// processState returns the one-letter state of a process from /proc: R, S, T (stopped), Z (dead,
// not reaped) and so on. The error is os.ErrNotExist when there is none of that pid.
func processState(pid int) (byte, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, syscall.ESRCH) { // died between open and read
		return 0, os.ErrNotExist
	}
	if err != nil {
		return 0, err
	}
	// "pid (name) S ...": the name may itself hold brackets, so look from the right.
	_, rest, ok := bytes.Cut(stat[bytes.LastIndexByte(stat, ')'):], []byte(" "))
	if !ok || len(rest) == 0 {
		return 0, fmt.Errorf("read the state of process %d: %q", pid, stat)
	}
	return rest[0], nil
}
