package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/sluicehq/sluice/bench/internal/load"
	"github.com/sluicehq/sluice/bench/internal/reference"
	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testredis"
)

// servers are the processes that are compared.
type servers struct {
	node         *testnode.Node
	window, pool *reference.Service
	emptyAddr    string
	emptyPID     int
	redisPID     int
	list         []*form
}

// One rule that admits everything, the same for both: fixed windows of an hour, counted by the descriptor's user.
const (
	nodeRules = `
[[rule]]
namespace = "bench"
name = "users"
key = ["user"]
limits = [{ algorithm = "fixed_window", limit = 1000000, window = "1h" }]
`
	referenceRules = `
domain: bench
descriptors:
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 1000000 }
`
)

// startServers starts the node, the reference twice and the empty handler.
func startServers(ctx context.Context, main *testredis.Main, redis *testredis.Server) (*servers, error) {
	s := &servers{node: testnode.Start(main, testnode.Options{Rules: nodeRules, Config: fmt.Sprintf(`
[redis]
url = "redis://%s"
[limiter]
timeout = "2s"
[admin]
pprof = true
`, redis.Addr())})}
	s.redisPID = redis.PID()
	program, err := reference.Build(ctx)
	if err != nil {
		return nil, err
	}
	// Its best configurations: commands gathered for 150 µs, or a large pool; a local cache, no statistics, no logs.
	const cache = "LOCAL_CACHE_SIZE_IN_BYTES=104857600"
	files := map[string][]byte{"bench.yaml": []byte(referenceRules)}
	if s.window, err = reference.Start(main, program, redis.Addr(), files, cache, "REDIS_PIPELINE_WINDOW=150us", "REDIS_PIPELINE_LIMIT=0"); err != nil {
		return nil, err
	}
	if s.pool, err = reference.Start(main, program, redis.Addr(), files, cache, "REDIS_POOL_SIZE=100"); err != nil {
		return nil, err
	}
	s.emptyAddr, s.emptyPID, err = startEmpty(ctx, main)
	if err != nil {
		return nil, err
	}
	s.list, err = s.makeForms()
	return s, err
}

func (s *servers) forms() []*form { return s.list }

func startEmpty(ctx context.Context, main *testredis.Main) (addr string, pid int, err error) {
	binary := filepath.Join(main.TempDir(), "empty")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "./grpc/empty").CombinedOutput(); err != nil {
		return "", 0, fmt.Errorf("build the empty service: %w\n%s", err, out)
	}
	cmd := exec.CommandContext(ctx, binary)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", 0, err
	}
	if err := start(main, cmd); err != nil {
		return "", 0, err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	return strings.TrimSpace(line), cmd.Process.Pid, err
}

// start runs a process that ends with this one.
func start(main *testredis.Main, cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	main.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return nil
}

// exactShare reads the node's own count of decisions by mode.
func (s *servers) exactShare(ctx context.Context) (share, total float64, err error) {
	series, err := load.Metrics(ctx, s.node.Admin, "sluice_decisions_total{")
	if err != nil {
		return 0, 0, err
	}
	exact := 0.0
	for name, n := range series {
		total += n
		if strings.Contains(name, `mode="exact"`) {
			exact += n
		}
	}
	if total == 0 {
		return 0, 0, errors.New("the node counted no decisions")
	}
	return exact / total, total, nil
}
