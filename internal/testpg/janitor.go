package testpg

import (
	"io"
	"os/exec"
	"syscall"
)

// janitor is a shell that removes a directory when this process is gone, however it ended: no clean-up of ours runs after a SIGKILL, and a
// server shared by all tests of a binary has no test whose end could remove it.
type janitor struct{ stdin io.Closer }

// hire starts a janitor for a directory. It reads from a pipe that nobody writes to, so it wakes up when the other end, ours, is closed; a
// server needs a moment to end by itself before its files can go.
func hire(dir string) (*janitor, error) {
	cmd := exec.Command("/bin/sh", "-c", `read -r _; n=0; while [ -e "$1/data/postmaster.pid" ] && [ $n -lt 50 ]; do sleep 0.1; n=$((n+1)); done; rm -rf "$1"`, "sh", dir)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C at the terminal is not for it
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = cmd.Wait() }() // ends with the shell, which ends by dismiss or after us
	return &janitor{stdin}, nil
}

// dismiss lets the janitor do its work now.
func (j *janitor) dismiss() { _ = j.stdin.Close() }
