package app_test

import (
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testredis"
)

// socket opens a listening socket as a supervisor does that hands it to one process after the other.
func socket(t *testing.T) (file *os.File, addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file, err = l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file, l.Addr().String()
}

// load asks an address without pause, over connections that are kept as long as the server keeps them, and without retries.
type load struct {
	answered, failed atomic.Int64
	fault            atomic.Pointer[string]
	stop             chan struct{}
	clients          sync.WaitGroup
}

func startLoad(t *testing.T, clients int, ask func(*http.Client) (answer, error)) *load {
	t.Helper()
	l := &load{stop: make(chan struct{})}
	for range clients {
		client := &http.Client{Transport: &http.Transport{}}
		l.clients.Go(func() {
			defer client.CloseIdleConnections()
			for {
				select {
				case <-l.stop:
					return
				default:
				}
				if a, err := ask(client); err != nil || a.status != http.StatusOK {
					text := a.body
					if err != nil {
						text = err.Error()
					}
					l.fault.Store(&text)
					l.failed.Add(1)
				}
				l.answered.Add(1)
			}
		})
	}
	return l
}

// reach waits for n more answers.
func (l *load) reach(t *testing.T, n int64) {
	t.Helper()
	want := l.answered.Load() + n
	eventually(t, 2*patience, "the load goes on", func() error {
		if l.answered.Load() < want {
			return http.ErrHandlerTimeout
		}
		return nil
	})
}

// end stops the load and fails the test when a request failed.
func (l *load) end(t *testing.T) {
	t.Helper()
	close(l.stop)
	l.clients.Wait()
	if n := l.failed.Load(); n > 0 {
		t.Errorf("%d of %d requests failed, want 0; the last one: %s", n, l.answered.Load(), *l.fault.Load())
	}
}

func TestHandover_FailsNoRequest(t *testing.T) {
	t.Parallel()
	redis := testredis.Single(t, testredis.Options{})
	checks, checkAddr := socket(t)
	proxied, gatewayAddr := socket(t)
	opts := testnode.Options{
		Config:  strings.Replace(onRedis(redis.Addr()), `grace = "10ms"`, `grace = "500ms"`, 1) + routeTo(named(t, "here")),
		Rules:   strings.Replace(usersRule, "limit = 3", "limit = 1000000000", 1),
		Gateway: true,
		Sockets: map[string]*os.File{"http": checks, "gateway": proxied},
	}
	node := testnode.Start(t, opts)
	if node.HTTP != checkAddr || node.Gateway != gatewayAddr {
		t.Fatalf("the node listens at %s and %s, want %s and %s", node.HTTP, node.Gateway, checkAddr, gatewayAddr)
	}
	loads := []*load{
		startLoad(t, 4, func(c *http.Client) (answer, error) {
			return request(t, c, http.MethodPost, "http://"+checkAddr+"/v1/check", `{"subject":{"user":"ann"}}`)
		}),
		startLoad(t, 4, func(c *http.Client) (answer, error) {
			return request(t, c, http.MethodPost, "http://"+gatewayAddr+"/", "hello")
		}),
	}
	for range 3 {
		next := testnode.Start(t, opts)
		stopped(t, node, exitWithin)
		node = next
		for _, l := range loads {
			l.reach(t, 500)
		}
	}
	for _, l := range loads {
		l.end(t)
	}
	t.Logf("3 handovers, %d checks and %d proxied requests", loads[0].answered.Load(), loads[1].answered.Load())
}

func TestHandover_SocketsThatAreNotOursAreRefused(t *testing.T) {
	t.Parallel()
	for _, env := range [][]string{
		{"LISTEN_FDS=1", "LISTEN_FDNAMES=htpp"},
		{"LISTEN_FDS=2", "LISTEN_FDNAMES=http"},
		{"LISTEN_FDS=x", "LISTEN_FDNAMES=http"},
	} {
		out := testnode.Run(t, env, "serve", "--set", "redis.url=memory", "--set", "http.listen=127.0.0.1:0", "--set", "grpc.listen=", "--set", "admin.listen=")
		if out.Code != 1 || !strings.Contains(out.Stderr, "want") || !strings.Contains(out.Stderr, "LISTEN_FDNAMES") {
			t.Errorf("%v: got exit code %d, want 1 and what to do:\n%s", env, out.Code, out.Stderr)
		}
	}
}
