// Package testnode builds the sluice command and runs it as a process on free ports, for tests and measurements that
// need whole nodes: killed, paused, restarted.
package testnode

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sluicehq/sluice/internal/testredis"
)

// TB is what starting a node needs of a test; testredis.Program stands in for one in programs.
type TB = testredis.TB

// AdminToken is that of every node started here.
const AdminToken = "testnode-admin-token"

// Options say how a node runs.
type Options struct {
	// Config is the TOML of its configuration, without listeners and the admin token, which are set here.
	Config string
	// Rules is the TOML of its rules file.
	Rules string
	// Gateway asks for the gateway listener.
	Gateway bool
	// NoToken leaves the admin token out.
	NoToken bool
	// Sockets are listening sockets that the node takes over instead of opening its own, by the names of its listeners.
	Sockets map[string]*os.File
	// Stdout takes what it writes there, until it has ended. Default: nobody does.
	Stdout io.Writer
	// Database is the URL of its database. Default: none.
	Database string
	// Snapshot keeps the database's rules in Dir/rules.snapshot, for a start without it.
	Snapshot bool
	// Name is the node's; those of one machine would else have the same.
	Name string
	// Dir is that of an earlier node, whose files are taken over as they are. Default: a new one.
	Dir string
	// Env is added to its environment.
	Env []string
	// Args are added to its command line.
	Args []string
}

// Node is a running sluice serve.
type Node struct {
	// Dir holds sluice.toml and rules.d/rules.toml, which may be changed while the node runs.
	Dir string
	// HTTP, GRPC, Admin and Gateway are addresses host:port; a listener that was not asked for has none.
	HTTP, GRPC, Admin, Gateway string

	tb   TB
	cmd  *exec.Cmd
	done chan struct{}

	mu   sync.Mutex
	log  bytes.Buffer
	addr map[string]string
	up   chan struct{}
	err  error
}

var build = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/sluicehq/sluice").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	module := strings.TrimSpace(string(out)) // callers may be in another one
	// Always at the same place, because nobody knows when to remove it.
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("sluice-testnode-%d-%x", os.Getuid(), sha256.Sum256([]byte(module))))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	binary, args := filepath.Join(dir, "sluice"), []string{"build"}
	if raceDetector { // as the test itself
		binary, args = binary+"-race", append(args, "-race")
	}
	fresh := fmt.Sprintf("%s.%d", binary, os.Getpid())
	cmd := exec.Command("go", append(args, "-o", fresh, "./cmd/sluice")...)
	cmd.Dir = module
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build sluice: %w\n%s", err, out)
	}
	// Other processes may be running the one before, or building one of their own.
	return binary, os.Rename(fresh, binary)
})

// Binary builds the command once per process and returns its path.
func Binary(tb TB) string {
	tb.Helper()
	path, err := build()
	if err != nil {
		tb.Fatalf("%v", err)
	}
	return path
}

// startTimeout is for building nothing and dialling nobody; a loaded machine needs some of it.
const startTimeout = 30 * time.Second

// Start runs a node and waits until it is ready. It is killed when the test ends.
func Start(tb TB, opts Options) *Node {
	tb.Helper()
	binary := Binary(tb)
	n := &Node{Dir: opts.Dir, tb: tb, addr: map[string]string{}}
	if n.Dir == "" {
		n.Dir = tb.TempDir()
	}
	n.write("sluice.toml", opts.Config)
	if err := os.MkdirAll(filepath.Join(n.Dir, "rules.d"), 0o700); err != nil {
		tb.Fatalf("%v", err)
	}
	n.WriteRules(opts.Rules)
	args := []string{"serve", "--config", filepath.Join(n.Dir, "sluice.toml"), "--set", "log.format=json"}
	for _, door := range []string{"http", "grpc", "admin", "gateway"} {
		if door != "gateway" || opts.Gateway {
			args = append(args, "--set", door+".listen=127.0.0.1:0")
		}
	}
	n.cmd = exec.Command(binary, append(append(args, n.controlled(opts)...), opts.Args...)...)
	n.cmd.Env, n.cmd.Stdout = os.Environ(), opts.Stdout
	if !opts.NoToken {
		n.cmd.Env = append(n.cmd.Env, "SLUICE_ADMIN__TOKEN="+AdminToken)
	}
	if opts.Database != "" {
		n.cmd.Env = append(n.cmd.Env, "SLUICE_DATABASE__URL="+opts.Database)
	}
	n.cmd.Env = append(append(n.cmd.Env, n.hand(opts.Sockets)...), opts.Env...)
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	n.run()
	tb.Cleanup(func() {
		n.Kill()
		if strings.Contains(n.Log(), "WARNING: DATA RACE") {
			tb.Fatalf("the node has a data race:\n%s", n.Log())
		}
	})
	n.waitReady()
	return n
}

// controlled are the arguments of a node with a database.
func (n *Node) controlled(opts Options) (args []string) {
	if opts.Snapshot {
		args = append(args, "--set", "control.snapshot_file="+filepath.Join(n.Dir, "rules.snapshot"))
	}
	if opts.Name != "" {
		args = append(args, "--set", "node="+opts.Name)
	}
	return args
}

// hand passes sockets on as systemd does.
func (n *Node) hand(sockets map[string]*os.File) (env []string) {
	var names []string
	for name, file := range sockets {
		names = append(names, name)
		n.cmd.ExtraFiles = append(n.cmd.ExtraFiles, file)
	}
	if names == nil {
		return nil
	}
	return []string{fmt.Sprintf("LISTEN_FDS=%d", len(names)), "LISTEN_FDNAMES=" + strings.Join(names, ":")}
}

// WriteRules replaces the rules file by another, as an editor does.
func (n *Node) WriteRules(text string) { n.write(filepath.Join("rules.d", "rules.toml"), text) }

// WriteConfig replaces the configuration file.
func (n *Node) WriteConfig(text string) { n.write("sluice.toml", text) }

func (n *Node) write(name, text string) {
	path := filepath.Join(n.Dir, name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		n.tb.Fatalf("%v", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		n.tb.Fatalf("%v", err)
	}
}

// run starts the process and reads its log.
func (n *Node) run() {
	stderr, err := n.cmd.StderrPipe()
	if err != nil {
		n.tb.Fatalf("%v", err)
	}
	n.up, n.done = make(chan struct{}), make(chan struct{})
	if err := n.cmd.Start(); err != nil {
		n.tb.Fatalf("start sluice: %v", err)
	}
	go func() {
		defer close(n.done)
		lines := bufio.NewScanner(stderr)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			n.note(lines.Bytes())
		}
		err := n.cmd.Wait()
		n.mu.Lock()
		n.err = err
		n.mu.Unlock()
	}()
}

// note keeps a line of the log, and the addresses it tells.
func (n *Node) note(line []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.log.Write(line)
	n.log.WriteByte('\n')
	var entry struct{ Msg, Door, Address string }
	if json.Unmarshal(line, &entry) != nil {
		return
	}
	switch entry.Msg {
	case "listening":
		n.addr[entry.Door] = entry.Address
	case "serving":
		n.HTTP, n.GRPC, n.Admin, n.Gateway = n.addr["http"], n.addr["grpc"], n.addr["admin"], n.addr["gateway"]
		close(n.up)
	}
}

func (n *Node) waitReady() {
	n.tb.Helper()
	timer := time.NewTimer(startTimeout)
	defer timer.Stop()
	select {
	case <-n.up:
	case <-n.done:
		n.tb.Fatalf("sluice ended at its start: %v\n%s", n.err, n.Log())
	case <-timer.C:
		n.tb.Fatalf("sluice did not start within %s:\n%s", startTimeout, n.Log())
	}
}

// Log returns what the node wrote so far.
func (n *Node) Log() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.log.String()
}

// PID is that of the process.
func (n *Node) PID() int { return n.cmd.Process.Pid }

// Signal sends a signal.
func (n *Node) Signal(s os.Signal) { _ = n.cmd.Process.Signal(s) }

// Kill ends the process at once and waits for it.
func (n *Node) Kill() {
	_ = n.cmd.Process.Kill() // it may have ended
	<-n.done
}

// Stop asks the process to end as an orchestrator does, and returns how long it took. It is an error when it fails or lingers.
func (n *Node) Stop(patience time.Duration) (time.Duration, error) {
	began := time.Now()
	n.Signal(syscall.SIGTERM)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-n.done:
	case <-timer.C:
		n.Kill()
		return time.Since(began), errors.New("the node did not end by itself")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Since(began), n.err
}

// Ready tells whether the node says that it is ready.
func (n *Node) Ready(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.Admin+"/readyz", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
