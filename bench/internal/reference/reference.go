// Package reference builds and runs envoyproxy/ratelimit, the reference service of Envoy's rate limit API, for bars that
// compare with it.
package reference

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/sluicehq/sluice/internal/testredis"
)

// Service is one that runs until the bar ends.
type Service struct {
	// GRPC and HTTP are the addresses it listens on.
	GRPC, HTTP string
	// PID is its process, for measuring.
	PID int
}

// Build builds the program and returns its path. It is for bars, which run in the folder bench.
func Build(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "../scripts/reference")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("build the reference service: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Start runs the program on a Redis of its own, with configuration files by name, and returns when it answers. env is
// added to its environment and is stronger than what is set here.
func Start(tb testredis.TB, program, redis string, files map[string][]byte, env ...string) (*Service, error) {
	dir := tb.TempDir()
	folder := filepath.Join(dir, "ratelimit", "config")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			return nil, err
		}
	}
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program)
	cmd.Env = append(environment(dir, redis, ports), env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
	})
	s := &Service{GRPC: address(ports[0]), HTTP: address(ports[1]), PID: cmd.Process.Pid}
	if err := s.await(); err != nil {
		text, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("%w; its log:\n%s", err, text)
	}
	return s, nil
}

func environment(dir, redis string, ports []int) []string {
	return append(os.Environ(),
		"USE_STATSD=false", "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED=true", "LOG_LEVEL=error", "BACKEND_TYPE=redis",
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL="+redis,
		"RUNTIME_ROOT="+dir, "RUNTIME_SUBDIRECTORY=ratelimit", "RUNTIME_WATCH_ROOT=false",
		"GRPC_HOST=127.0.0.1", "GRPC_PORT="+strconv.Itoa(ports[0]),
		"HOST=127.0.0.1", "PORT="+strconv.Itoa(ports[1]),
		"DEBUG_HOST=127.0.0.1", "DEBUG_PORT="+strconv.Itoa(ports[2]))
}

// await returns when the service says that it serves.
func (s *Service) await() error {
	conn, err := grpc.NewClient(s.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		answer, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
		if err == nil && answer.GetStatus() == healthpb.HealthCheckResponse_SERVING {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the reference service does not answer: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// freePorts returns ports that nobody listens on. Another program could take one before the service does; then the bar
// fails and says so.
func freePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

func address(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }
