package app_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/sluicehq/sluice/api/sluicev1"
	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testredis"
)

// exitWithin is what is promised: a node that is told to stop is gone within this time, whatever others do.
const exitWithin = 10 * time.Second

func withGrace(grace, drain string) string {
	return fmt.Sprintf("[redis]\nurl = \"memory\"\n[shutdown]\ngrace = %q\ndrain = %q\n", grace, drain)
}

// stopped stops a node and fails the test when that takes too long or is no success.
func stopped(t *testing.T, n *testnode.Node, within time.Duration) {
	t.Helper()
	took, err := n.Stop(within)
	if err != nil {
		t.Errorf("the node ended after %s with %v, want exit code 0 within %s:\n%s", took, err, within, n.Log())
	}
}

func TestStop_ReadinessGoesFirstAndRequestsUnderWayFinish(t *testing.T) {
	t.Parallel()
	arrived, leave := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-leave
		_, _ = w.Write([]byte("done"))
	}))
	t.Cleanup(slow.Close)
	node := testnode.Start(t, testnode.Options{Gateway: true, Config: withGrace("1s", "5s") + routeTo(slow.URL)})
	type result struct {
		answer answer
		err    error
	}
	got := make(chan result, 1)
	go func() {
		a, err := request(t, http.DefaultClient, http.MethodGet, "http://"+node.Gateway+"/", "")
		got <- result{a, err}
	}()
	<-arrived
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		stopped(t, node, exitWithin)
	}()
	eventually(t, patience, "not ready", func() error {
		a := mustRequest(t, http.MethodGet, "http://"+node.Admin+"/readyz", "")
		if a.status != http.StatusServiceUnavailable {
			return fmt.Errorf("/readyz answers %d", a.status)
		}
		return nil
	})
	if d, a := check(t, node, "ann"); !d.Allowed || !a.closes {
		t.Errorf("not ready: got %+v, connection closed %t, want an answer that asks to leave", d, a.closes)
	}
	// New connections are refused only after the grace period, while the request under way still is.
	eventually(t, patience, "new connections are refused", func() error {
		conn, err := net.Dial("tcp", node.Gateway)
		if err != nil {
			return nil //nolint:nilerr // it is what is waited for
		}
		return errors.Join(errors.New("accepted"), conn.Close())
	})
	close(leave)
	if r := <-got; r.err != nil || r.answer.body != "done" {
		t.Errorf("the request under way: got %q, %v, want the upstream's answer", r.answer.body, r.err)
	}
	<-ended
}

func TestStop_StreamsEndCleanly(t *testing.T) {
	t.Parallel()
	node := testnode.Start(t, testnode.Options{Config: withGrace("10ms", "5s"), Rules: usersRule})
	conn := dial(t, node)
	checks, err := sluicev1.NewLimiterServiceClient(conn).CheckStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := checks.Send(&sluicev1.CheckStreamRequest{Id: 1, Requests: []*sluicev1.Request{question{user: "ann"}.proto()}}); err != nil {
		t.Fatal(err)
	}
	if _, err := checks.Recv(); err != nil {
		t.Fatal(err)
	}
	watch, err := grpc_health_v1.NewHealthClient(conn).Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "sluice.v1.LimiterService"})
	if err != nil {
		t.Fatal(err)
	}
	if health, err := watch.Recv(); err != nil || health.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Fatalf("health: got %v, %v, want serving", health, err)
	}
	// Neither stream may hold the node up until it cuts them, after five seconds.
	stopped(t, node, 4*time.Second)
	if _, err := checks.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream of checks ended with %v, want io.EOF", err)
	}
	if health, err := watch.Recv(); err != nil || health.GetStatus() != grpc_health_v1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("health: got %v, %v, want not serving", health, err)
	}
	if _, err := watch.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("the watch of health ended with %v, want unavailable", err)
	}
}

func TestStop_ClientsThatHoldOnDoNotHoldItUp(t *testing.T) {
	t.Parallel()
	node := testnode.Start(t, testnode.Options{Config: inMemory, Rules: usersRule})
	for _, address := range []string{node.HTTP, node.GRPC, node.Admin} {
		for _, text := range []string{"", "POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"} {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			if _, err := conn.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	tail, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+node.Admin+"/v1/tail", nil)
	if err != nil {
		t.Fatal(err)
	}
	tail.Header.Set("Authorization", "Bearer "+testnode.AdminToken)
	resp, err := http.DefaultClient.Do(tail)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	stopped(t, node, exitWithin)
}

func TestStop_ARedisThatHangsDoesNotHoldItUp(t *testing.T) {
	t.Parallel()
	redis := testredis.Single(t, testredis.Options{})
	node := testnode.Start(t, testnode.Options{Config: onRedis(redis.Addr()), Rules: usersRule})
	if d, _ := check(t, node, "ann"); d.Mode != "exact" {
		t.Fatalf("got %+v, want exact", d)
	}
	redis.Pause()
	defer redis.Resume()
	stopped(t, node, exitWithin)
}

func TestStop_ASecondSignalEndsItAtOnce(t *testing.T) {
	t.Parallel()
	node := testnode.Start(t, testnode.Options{Config: withGrace("1m", "5s"), Rules: usersRule})
	node.Signal(syscall.SIGTERM)
	eventually(t, patience, "not ready", func() error {
		if node.Ready(t.Context()) {
			return errors.New("it is ready")
		}
		return nil
	})
	if took, err := node.Stop(exitWithin); took > exitWithin || err == nil || !strings.Contains(err.Error(), "signal") {
		t.Errorf("got %v after %s, want an end by the signal", err, took)
	}
}

func TestListen_AnAddressInUseEndsTheNodeWithWhatToDo(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = free.Close()
	out := testnode.Run(t, nil, "serve", "--set", "redis.url=memory",
		"--set", "http.listen="+free.Addr().String(), "--set", "grpc.listen="+taken.Addr().String(), "--set", "admin.listen=")
	if out.Code != 1 || !strings.Contains(out.Stderr, "address already in use: choose another address by grpc.listen") {
		t.Errorf("got exit code %d, want 1 and what to do:\n%s", out.Code, out.Stderr)
	}
	if conn, err := net.Dial("tcp", free.Addr().String()); err == nil {
		_ = conn.Close()
		t.Error("something still listens")
	}
}
