// Command proxies is make bar-proxies: the real nginx and the real Caddy, with exactly the recipes of deploy/, ask sluice
// about every request before they pass it on. Clients at several addresses press on in parallel; of each exactly the
// limit reaches the app behind the proxy, and every other request is refused to its client in full.
package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/internal/testproxy"
	"github.com/sluicehq/sluice/internal/testredis"
)

const (
	clients     = 16 // addresses
	parallel    = 4  // connections of each
	perConn     = 50 // requests on each
	limit       = 100
	allRequests = clients * parallel * perConn
)

func main() {
	b := bar.New("bar-proxies")
	program := testredis.Program()
	fail := func(err error) {
		program.Close()
		b.Fatal(err)
	}
	deploy, err := findDeploy()
	if err != nil {
		fail(err)
	}
	for _, name := range []string{"nginx", "Caddy"} {
		t, err := newBed(program)
		if err != nil {
			fail(err)
		}
		var proxy *testproxy.Proxy
		if name == "nginx" {
			proxy = testproxy.Nginx(program, func(listen, _ string) string {
				return testproxy.Recipe(program, deploy, "nginx/sluice.conf", listen, t.door, t.app)
			})
		} else {
			proxy = testproxy.Caddy(program, func(listen string) string {
				return testproxy.Recipe(program, deploy, "caddy/Caddyfile", listen, t.door, t.app)
			})
		}
		b.Say("%s: %d clients × %d connections × %d requests, %d allowed for each client", name, clients, parallel, perConn, limit)
		got, err := press(context.Background(), proxy.Addr)
		if err != nil {
			fail(err)
		}
		reached, uneven := t.reached()
		b.Exactly(name+": requests that reached the app", reached, clients*limit)
		b.Exactly(name+": clients of which not exactly the limit did", uneven, 0)
		b.Exactly(name+": allowed, with RateLimit", got.allowed, clients*limit)
		b.Exactly(name+": 429 with Retry-After, RateLimit and problem body", got.refused, allRequests-clients*limit)
		b.Exactly(name+": any other answer", got.other, 0)
		if got.example != "" {
			b.Say("%s: such as %s", name, got.example)
		}
	}
	program.Close()
	b.End()
}

// findDeploy looks for the recipes from here upwards.
func findDeploy() (string, error) {
	dir, err := os.Getwd()
	for err == nil && dir != "/" {
		if _, missing := os.Stat(filepath.Join(dir, "deploy", "nginx")); missing == nil {
			return filepath.Join(dir, "deploy"), nil
		}
		dir = filepath.Dir(dir)
	}
	return "", os.ErrNotExist
}
