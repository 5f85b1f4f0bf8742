package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/engine"
	"github.com/sluicehq/sluice/internal/gateway"
	"github.com/sluicehq/sluice/internal/httpserver"
	"github.com/sluicehq/sluice/internal/identity"
	"github.com/sluicehq/sluice/internal/testredis"
)

// serve is a worker's life: it listens, tells where, and ends when its standard input does.
func serve(text string) error {
	var job part
	if err := json.Unmarshal([]byte(text), &job); err != nil {
		return err
	}
	program := testredis.Program()
	defer program.Close()
	counts := &counts{}
	handler, err := handlerOf(program, job, counts)
	if err != nil {
		return err
	}
	stop, err := startProfile(job.Profile)
	if err != nil {
		return err
	}
	defer stop()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := httpserver.New(handler, httpserver.Options{Streams: true})
	go func() { _ = s.Serve(l) }() // ends with the process
	fmt.Println(l.Addr())
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(counted{counts.all.Load(), counts.exact.Load()})
}

func handlerOf(program *testredis.Main, job part, counts *counts) (http.Handler, error) {
	switch job.Role {
	case "upstream":
		return http.HandlerFunc(answer), nil
	case "bare":
		return newBare(job.Upstream), nil
	case "gateway":
		return newGateway(program, job, counts)
	}
	return nil, fmt.Errorf("no part %q", job.Role)
}

// answer is the upstream.
func answer(w http.ResponseWriter, _ *http.Request) {
	w.Header()["Content-Type"] = []string{"application/json"}
	_, _ = w.Write([]byte(`{"ok":"true"}`))
}

// newBare is a proxy without limits. It has what the gateway has to be quick: idle connections enough, and lent buffers.
func newBare(upstream string) http.Handler {
	to := &url.URL{Scheme: "http", Host: upstream}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.SetXForwarded()
		},
		Transport:  &http.Transport{MaxIdleConnsPerHost: 2048, DisableCompression: true, ResponseHeaderTimeout: 30 * time.Second},
		BufferPool: &buffers{},
	}
}

type buffers struct{ pool sync.Pool }

// Get lends a buffer.
func (b *buffers) Get() []byte {
	if lent, ok := b.pool.Get().(*[]byte); ok {
		return *lent
	}
	return make([]byte, 32<<10)
}

// Put takes a buffer back.
func (b *buffers) Put(buf []byte) { b.pool.Put(&buf) }

// newGateway counts by user, whom a trusted proxy names.
func newGateway(program *testredis.Main, job part, counts *counts) (http.Handler, error) {
	limiter, err := newLimiter(program, job.Redis)
	if err != nil {
		return nil, err
	}
	who, err := identity.New(config.Identity{
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Headers: config.IdentityHeaders{User: "X-User"},
	}, identity.Options{})
	if err != nil {
		return nil, err
	}
	return gateway.New(config.Gateway{
		Upstreams: []config.Upstream{{Name: "app", URL: "http://" + job.Upstream}}, Routes: []config.Route{{Upstream: "app"}},
	}, engine.New(limiter, engine.Options{Observer: counts}), who, gateway.Options{})
}

// counts is told of every decision.
type counts struct{ all, exact atomic.Int64 }

// Decided counts.
func (c *counts) Decided(_ context.Context, _ *sluice.Request, d *sluice.Decision, _ time.Time, _ time.Duration) {
	c.all.Add(1)
	if d.Allowed && d.Cause == sluice.ByLimits && d.Mode == sluice.Exact {
		c.exact.Add(1)
	}
}

// startProfile writes a CPU profile until the returned function is called.
func startProfile(file string) (stop func(), err error) {
	if file == "" {
		return func() {}, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}, nil
}
