package testproxy

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Proxy is a proxy that runs.
type Proxy struct {
	// Addr is host:port that it listens on.
	Addr string
	// Dir is its directory.
	Dir string

	cmd  *exec.Cmd
	done chan struct{} // closed once it is dead and reaped
}

// readyWithin bounds a start. Caddy takes a second on a busy machine.
const readyWithin = 20 * time.Second

// attempts is how often a start is tried: somebody else may take the free port first.
const attempts = 3

// launch starts a proxy and returns when it accepts connections.
func launch(tb TB, program string, command func(listen, dir string) *exec.Cmd) *Proxy {
	tb.Helper()
	if _, err := exec.LookPath(program); err != nil {
		tb.Fatalf("%s not found: run scripts/proxies", program)
	}
	var err error
	for range attempts {
		p := &Proxy{Addr: freeAddr(), Dir: tb.TempDir(), done: make(chan struct{})}
		if p.cmd = command(p.Addr, p.Dir); p.start() == nil {
			if err = p.wait(); err == nil {
				tb.Cleanup(p.Stop)
				return p
			}
			p.Stop()
		}
	}
	tb.Fatalf("testproxy: start %s: %v", program, err)
	return nil
}

// freeAddr returns an address that is probably free, below the ports that outgoing connections take.
func freeAddr() string { return fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000)) }

func (p *Proxy) start() error {
	log, err := os.Create(filepath.Join(p.Dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started := make(chan error, 1)
	// The kernel's parent is the thread that forked; it must live as long as the child, or the child is shot.
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // how it died is in its log
		}
		close(p.done)
	}()
	return <-started
}

// wait returns when the proxy accepts connections, or why it does not.
func (p *Proxy) wait() error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(readyWithin); time.Now().Before(deadline); <-tick.C {
		select {
		case <-p.done:
			return fmt.Errorf("it ended: %s", p.Log())
		default:
		}
		if c, err := net.Dial("tcp", p.Addr); err == nil {
			return c.Close()
		}
	}
	return errors.New("it does not listen: " + p.Log())
}

// Log returns what the proxy has said.
func (p *Proxy) Log() string {
	text, err := os.ReadFile(filepath.Join(p.Dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Stop ends the proxy and returns when it is gone. Its files stay. A second call does nothing.
func (p *Proxy) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	select {
	case <-p.done:
	case <-time.After(5 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}
