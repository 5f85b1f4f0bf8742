package identity_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/identity"
)

// twoProxies is an outer and an inner nginx in one process, each appending to X-Forwarded-For as its documentation says.
const twoProxies = `
daemon off; master_process off; worker_processes 1; pid %[1]s/pid; error_log stderr crit;
events { worker_connections 64; }
http {
	access_log off;
	client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
	proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
	server { listen %[2]s; location / { proxy_bind 127.0.0.10; proxy_pass http://%[3]s; } }
	server { listen %[3]s; location / { proxy_bind 127.0.0.11; proxy_pass http://%[4]s; } }
}`

// startProxies returns the outer one's address.
func startProxies(t *testing.T, upstream string) string {
	t.Helper()
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("nginx is not installed: scripts/proxies does it")
	}
	dir, outer, inner := t.TempDir(), freeAddr(t), freeAddr(t)
	conf := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, twoProxies, dir, outer, inner, upstream), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, nginx, "-p", dir, "-c", conf)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	for deadline := time.Now().Add(10 * time.Second); ; <-time.After(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", outer); err == nil {
			_ = c.Close()
			return outer
		} else if time.Now().After(deadline) {
			t.Fatalf("nginx does not answer: %v", err)
		}
	}
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestSubject_BehindTwoRealProxiesIsTheClient(t *testing.T) {
	t.Parallel()
	byNetwork := newResolver(t, config.Identity{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.10/31")}}, identity.Options{})
	byDepth := newResolver(t, config.Identity{TrustedDepth: 2}, identity.Options{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		peer := identity.Peer(req)
		fmt.Fprint(w, byNetwork.Subject(req.Context(), peer, req.Header).IP, " ", byDepth.Subject(req.Context(), peer, req.Header).IP)
	}))
	t.Cleanup(upstream.Close)
	outer := startProxies(t, upstream.Listener.Addr().String())
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 99)}}
	client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
	for _, sent := range [][]string{nil, {"1.1.1.1"}, {"1.1.1.1, 127.0.0.10"}, {"127.0.0.11", "127.0.0.10"}, {""}, {"unknown,"}, {`"`}} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+outer+"/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header["X-Forwarded-For"] = sent
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if want := "127.0.0.99 127.0.0.99"; string(body) != want {
			t.Errorf("sent %q: by networks and by depth got %s, want %s", sent, body, want)
		}
	}
}
