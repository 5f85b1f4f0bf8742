package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/engine"
	"github.com/sluicehq/sluice/internal/forwardauth"
	"github.com/sluicehq/sluice/internal/httpserver"
	"github.com/sluicehq/sluice/internal/identity"
	"github.com/sluicehq/sluice/internal/testredis"
	"github.com/sluicehq/sluice/redisstore"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

// bed is a forward-auth door over a real Redis, and an app that counts by client.
type bed struct {
	door, app string // host:port

	mu   sync.Mutex
	seen map[string]int64
}

func newBed(p *testredis.Main) (*bed, error) {
	server := testredis.Single(p, testredis.Options{})
	conn, err := rueidisconn.New(rueidisconn.Options{Addrs: []string{server.Addr()}})
	if err != nil {
		return nil, err
	}
	p.Cleanup(conn.Close)
	rules, faults := sluice.Compile([]sluice.Rule{{
		Name: "per-ip", Key: []sluice.Dimension{sluice.IP},
		// So long that no run sees its end.
		Limits: []sluice.Limit{{Algorithm: sluice.FixedWindow, Limit: limit, Window: 365 * 24 * time.Hour}},
	}})
	if len(faults) > 0 {
		return nil, faults[0]
	}
	// All run on the same small machine, so a decision may wait longer than its usual deadline.
	limiter := sluice.New(redisstore.New(conn, redisstore.Options{}), rules, sluice.Options{Timeout: 10 * time.Second})
	who, err := identity.New(config.Identity{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}, identity.Options{})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/v1/forward-auth", forwardauth.New(engine.New(limiter, engine.Options{}), who, forwardauth.Options{}))
	t := &bed{seen: map[string]int64{}}
	if t.door, err = serve(p, mux); err != nil {
		return nil, err
	}
	t.app, err = serve(p, http.HandlerFunc(t.count))
	return t, err
}

// count is the app. The proxy tells it the client.
func (t *bed) count(_ http.ResponseWriter, r *http.Request) {
	client := r.Header.Get("X-Forwarded-For")
	t.mu.Lock()
	t.seen[client[strings.LastIndexByte(client, ' ')+1:]]++
	t.mu.Unlock()
}

// reached tells how many requests came through, and for how many clients it was not exactly the limit.
func (t *bed) reached() (all, uneven int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range clients {
		n := t.seen[clientAddr(i)]
		all += n
		if n != limit {
			uneven++
		}
	}
	return all, uneven
}

// clientAddr is the address of a client. All of 127/8 is this machine.
func clientAddr(i int) string { return fmt.Sprintf("127.0.1.%d", i+1) }

func serve(p *testredis.Main, h http.Handler) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	s := httpserver.New(h, httpserver.Options{})
	go func() { _ = s.Serve(l) }() // ends with Shutdown
	p.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.Shutdown(ctx)
	})
	return l.Addr().String(), nil
}
