package testpg

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// process is one running child. It does not outlive this process, whatever ends this process.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed once the child is dead and reaped
}

// startProcess starts the program as the user, with its output appended to log.
func startProcess(binary string, args []string, as *syscall.Credential, log *os.File) (*process, error) {
	cmd := exec.Command(binary, args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, "/"
	cmd.Env = []string{"LC_ALL=C.UTF-8", "PATH=" + os.Getenv("PATH"), "TZ=UTC"}
	// SIGQUIT is PostgreSQL's immediate shutdown: it takes its own children and shared memory along, which SIGKILL would leave behind.
	// In a process group of its own, so that a Ctrl-C at the terminal is ours to handle.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT, Setpgid: true, Credential: as}

	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	// To the kernel the "parent" is the thread that forked: each child has a goroutine that owns its thread and stays on it for as long as
	// the child lives. It ends when the child does; who waits for that waits for done.
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

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

func (p *process) signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// all sends a signal to the server and to its children, each of which is in a session of its own. The server is stopped first, so that it
// starts no more of them meanwhile.
func (p *process) all(sig syscall.Signal) error {
	_, err := p.signalAll(sig)
	return err
}

// killAll ends them all and returns when they are gone: a child that still dies holds the memory that a new server asks for.
func (p *process) killAll() error {
	pids, err := p.signalAll(syscall.SIGKILL)
	if err != nil {
		return err
	}
	<-p.done
	return poll(stopLimit, nil, func() error {
		for _, pid := range pids {
			if state := stateOf(pid); state != 0 && state != 'Z' {
				return fmt.Errorf("process %d is in state %q", pid, state)
			}
		}
		return nil
	})
}

// stateOf returns the one-letter state of a process, 0 where there is none.
func stateOf(pid int) byte {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	if len(rest) == 0 {
		return 0
	}
	return rest[0]
}

func (p *process) signalAll(sig syscall.Signal) ([]int, error) {
	if !p.running() {
		return nil, os.ErrProcessDone
	}
	pid := p.cmd.Process.Pid
	if sig != syscall.SIGCONT {
		if err := p.signal(syscall.SIGSTOP); err != nil {
			return nil, err
		}
	}
	pids, err := children(pid)
	if err != nil {
		return nil, err
	}
	pids = append(pids, pid)
	for _, child := range pids {
		if err := syscall.Kill(child, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return nil, err
		}
	}
	return pids, nil
}

// children lists the processes whose parent is the given one.
func children(parent int) ([]int, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, name := range threads {
		list, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		for _, field := range strings.Fields(string(list)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				return nil, err
			}
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// unprivileged returns the user that PostgreSQL runs as, which must not be root. It is nil where we are not root ourselves.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("find a user for PostgreSQL: %w: run make deps", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// find returns the path of one of PostgreSQL's programs, of its newest version. Debian keeps them out of PATH.
func find(program string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	paths, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + program)
	if err != nil || len(paths) == 0 {
		return "", fmt.Errorf("%s not found: run make deps", program)
	}
	slices.SortFunc(paths, func(a, b string) int { return version(b) - version(a) })
	return paths[0], nil
}

// version reads 15 out of /usr/lib/postgresql/15/bin/initdb.
func version(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

// run runs one of PostgreSQL's programs to its end.
func run(as *syscall.Credential, program string, args ...string) error {
	path, err := find(program)
	if err != nil {
		return err
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = "/"
	cmd.Env = []string{"LC_ALL=C.UTF-8", "PATH=" + os.Getenv("PATH"), "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: as}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w:\n%s", program, err, out)
	}
	return nil
}
