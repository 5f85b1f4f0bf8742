package app

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/testredis"
)

// TestMain looks for goroutines that are left once all nodes of this process have ended.
func TestMain(m *testing.M) {
	code := m.Run()
	http.DefaultClient.CloseIdleConnections() // connections to nodes that were other processes
	// The database server that tests share lasts as long as this process, and so do those that wait for it.
	const testpg = "github.com/sluicehq/sluice/internal/testpg."
	shared := []goleak.Option{goleak.IgnoreAnyFunction(testpg + "hire.func1"), goleak.IgnoreAnyFunction(testpg + "startProcess.func1")}
	if err := goleak.Find(shared...); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "goroutines were left:", err)
		code = 1
	}
	os.Exit(code)
}

// written is a configuration in a file, and what loads it.
func written(t *testing.T, text string) func() (*config.Loaded, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sluice.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return func() (*config.Loaded, error) { return config.Load(config.Options{Path: path, Environ: []string{}}) }
}

const everyDoor = `
[http]
listen = "127.0.0.1:0"
[grpc]
listen = "127.0.0.1:0"
[admin]
listen = "127.0.0.1:0"
[gateway]
listen = "127.0.0.1:0"
[[gateway.upstream]]
name = "u"
url = "http://127.0.0.1:1"
[[gateway.route]]
upstream = "u"
[shutdown]
grace = "10ms"
[[rule]]
name = "users"
key = ["user"]
limits = [{ limit = 5, window = "1s" }]
`

// TestRun_LeavesNothingBehind stops nodes at any moment, also while the configuration is read again. TestMain finds what is left.
func TestRun_LeavesNothingBehind(t *testing.T) {
	t.Parallel()
	redis := testredis.Single(t, testredis.Options{})
	for i := range 6 {
		url := map[bool]string{true: "memory", false: "redis://" + redis.Addr()}[i%2 == 0]
		load := written(t, everyDoor+fmt.Sprintf("[redis]\nurl = %q\n", url))
		loaded, err := load()
		if err != nil {
			t.Fatal(err)
		}
		reload := make(chan os.Signal, 1)
		ready := make(chan map[string]string, 1)
		node, err := New(loaded, Options{Load: load, Reload: reload, Ready: func(a map[string]string) { ready <- a }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- node.Run(ctx) }()
		addresses := <-ready
		resp, err := http.Post("http://"+addresses["http"]+"/v1/check", "application/json", strings.NewReader(`{"subject":{"user":"ann"}}`))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		for n := range 3 {
			if n == 2-i%3 { // before, between and after
				stop()
			}
			select {
			case reload <- syscall.SIGHUP:
			case <-time.After(10 * time.Millisecond): // nobody reads it once the node ends
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("node %d: %v", i, err)
		}
		for name, address := range addresses {
			if conn, err := net.Dial("tcp", address); err == nil {
				_ = conn.Close()
				t.Errorf("node %d: the %s listener is still there", i, name)
			}
		}
	}
}

func TestRun_StoppedWhileItStartsIsNoFailure(t *testing.T) {
	t.Parallel()
	load := written(t, everyDoor+"[redis]\nurl = \"memory\"\n")
	for after := range 8 {
		loaded, err := load()
		if err != nil {
			t.Fatal(err)
		}
		node, err := New(loaded, Options{Load: load})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Duration(after)*500*time.Microsecond)
		if err := node.Run(ctx); err != nil {
			t.Errorf("stopped after %d half milliseconds: %v", after, err)
		}
		stop()
	}
}

// TestRun_ThatCannotStartLeavesNothingBehind: the last listener fails, so all others are open by then.
func TestRun_ThatCannotStartLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	gateway := "[gateway]\nlisten = \"127.0.0.1:0\""
	for _, replaced := range []string{
		fmt.Sprintf("[gateway]\nlisten = %q", taken.Addr().String()),
		gateway + "\n[gateway.tls]\ncert_file = \"missing.pem\"\nkey_file = \"missing.pem\"",
	} {
		load := written(t, strings.Replace(everyDoor, gateway, replaced, 1)+"[redis]\nurl = \"memory\"\n")
		loaded, err := load()
		if err != nil {
			t.Fatal(err)
		}
		node, err := New(loaded, Options{Load: load})
		if err != nil {
			t.Fatal(err)
		}
		if err := node.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "gateway") {
			t.Errorf("got %v, want what is wrong with the gateway", err)
		}
	}
}
