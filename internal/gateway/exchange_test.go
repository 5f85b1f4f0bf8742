package gateway_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/httpserver"
)

func TestGateway_PassesWebSockets(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{rules: []sluice.Rule{perIP(2)}, handler: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("RateLimit", "theirs")
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		for {
			kind, text, err := c.Read(r.Context())
			if err != nil {
				return
			}
			if err := c.Write(r.Context(), kind, append([]byte("echo "), text...)); err != nil {
				return
			}
		}
	}})
	c, res, err := websocket.Dial(t.Context(), "ws://"+b.addr+"/chat", nil) //nolint:bodyclose // it need not be, says websocket.Dial
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if v := res.Header.Values("RateLimit"); len(v) != 1 || !strings.HasPrefix(v[0], `"ip";r=1`) {
		t.Errorf("RateLimit of the 101: %q", v)
	}
	for i := range 3 {
		text := fmt.Sprintf("hello %d", i)
		if err := c.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if _, got, err := c.Read(t.Context()); err != nil || string(got) != "echo "+text {
			t.Fatalf("%q, %v", got, err)
		}
	}
	b.get("/")
	_, res, err = websocket.Dial(t.Context(), "ws://"+b.addr+"/chat", nil) //nolint:bodyclose // as above
	if err == nil || res.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a handshake beyond the limit: %v", err)
	}
}

func TestGateway_PassesEventsAsTheyHappen(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	b := newBed(t, setup{rules: []sluice.Rule{perIP(10)}, handler: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			_ = http.NewResponseController(w).Flush()
			<-next
		}
	}})
	res, err := http.DefaultTransport.RoundTrip(b.request(http.MethodGet, "/events"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for i := range 3 {
		line, err := lines.ReadString('\n')
		if want := fmt.Sprintf("data: %d\n", i); err != nil || line != want {
			t.Fatalf("%q, %v; want %q before the upstream goes on", line, err, want)
		}
		_, _ = lines.ReadString('\n')
		next <- struct{}{}
	}
	if res.Header.Get("RateLimit") == "" {
		t.Error("no RateLimit on the stream")
	}
}

func TestGateway_KeepsItsFieldsAfterInformationalAnswers(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{rules: []sluice.Rule{perIP(10)}, handler: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusTeapot)
	}})
	got := b.get("/")
	if v := got.Header.Values("RateLimit"); got.StatusCode != http.StatusTeapot || len(v) != 1 {
		t.Errorf("%s, RateLimit %q", got.Status, v)
	}
}

func TestGateway_TellsTheUpstreamWhoCalled(t *testing.T) {
	t.Parallel()
	forged := []string{
		"X-Forwarded-For", "1.2.3.4", "X_Forwarded_For", "1.2.3.4", "X.Forwarded.For", "1.2.3.4", "Forwarded", "for=1.2.3.4",
		"X-Forwarded-Host", "evil", "X-Forwarded-Proto", "https", "X-Real-Ip", "1.2.3.4", "X-Original-Url", "/admin", "X-Rewrite-Url", "/admin",
		"X-User", "root", "X_User", "root", "X.User", "root", "Connection", "X-Forwarded-For, RateLimit, close",
	}
	who := config.Identity{Headers: config.IdentityHeaders{User: "X-User"}}

	who.TrustedProxies = parsePrefixes("192.0.2.0/24") // not us
	b := newBed(t, setup{identity: who})
	b.get("/", forged...)
	h := b.upstream.requests()[0].Header
	if h.Get("X-Forwarded-For") != "127.0.0.1" || h.Get("X-Forwarded-Host") != b.addr || h.Get("X-Forwarded-Proto") != "http" {
		t.Errorf("forwarding fields of an untrusted client: %v", h)
	}
	for _, name := range []string{"X_forwarded_for", "X.forwarded.for", "Forwarded", "X-Real-Ip", "X-Original-Url", "X-Rewrite-Url", "X-User", "X_user", "X.user"} {
		if v, there := h[name]; there {
			t.Errorf("%s: %q came through", name, v)
		}
	}

	who.TrustedProxies = parsePrefixes("127.0.0.0/8")
	b = newBed(t, setup{identity: who})
	b.get("/", append(forged[:len(forged)-2:len(forged)-2], "X-Other", "y")...)
	h = b.upstream.requests()[0].Header
	if h.Get("X-Forwarded-For") != "1.2.3.4, 127.0.0.1" || h.Get("X-Forwarded-Host") != "evil" || h.Get("X-Forwarded-Proto") != "https" || h.Get("X-User") != "root" {
		t.Errorf("forwarding fields of a trusted proxy: %v", h)
	}
	for _, name := range []string{"X_forwarded_for", "X.forwarded.for", "X_user", "X.user"} {
		if v, there := h[name]; there {
			t.Errorf("%s: %q came through from a trusted proxy", name, v)
		}
	}
}

func TestGateway_FollowsNoRedirect(t *testing.T) {
	t.Parallel()
	other := newUpstream(t, nil)
	b := newBed(t, setup{handler: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL+"/in", http.StatusFound) }})
	if got := b.get("/"); got.StatusCode != http.StatusFound || got.Header.Get("Location") != other.URL+"/in" || len(other.requests()) != 0 {
		t.Errorf("%s %v, %d requests at the redirect's target", got.Status, got.Header, len(other.requests()))
	}
}

func TestGateway_UpgradesToNothingButWebSocket(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{})
	for _, upgrade := range []string{"h2c", "websocket, h2c", "HTTP/2.0", "TLS/1.0", "foo"} {
		before := len(b.upstream.requests())
		b.get("/", "Connection", "Upgrade, HTTP2-Settings", "Upgrade", upgrade, "Http2-Settings", "AAMAAABkAAQAAP__")
		seen := b.upstream.requests()[before:]
		if len(seen) != 1 || seen[0].Header.Get("Upgrade") != "" || seen[0].Header.Get("Http2-Settings") != "" {
			t.Errorf("Upgrade: %s reached the upstream: %v", upgrade, seen)
		}
	}
}

func TestGateway_IsNoOpenProxy(t *testing.T) {
	t.Parallel()
	other := newUpstream(t, nil)
	host := strings.TrimPrefix(other.URL, "http://")
	b := newBed(t, setup{gateway: func(c *config.Gateway) {
		c.Routes = append(c.Routes, config.Route{Host: "shop.example", Upstream: "app"})
	}})
	for request, want := range map[string]string{
		"GET " + other.URL + "/ HTTP/1.1\r\nHost: " + host + "\r\n":                     "421",
		"GET " + other.URL + "/ HTTP/1.1\r\nHost: shop.example\r\n":                     "421",
		"GET https://" + host + "/ HTTP/1.1\r\nHost: shop.example\r\n":                  "421",
		"GET ftp://" + host + "/ HTTP/1.1\r\nHost: " + host + "\r\n":                    "421",
		"GET http://user:pw@" + host + "/ HTTP/1.1\r\nHost: " + host + "\r\n":           "421",
		"CONNECT " + host + " HTTP/1.1\r\nHost: " + host + "\r\n":                       "405",
		"CONNECT shop.example:443 HTTP/1.1\r\nHost: shop.example\r\n":                   "405",
		"TRACE / HTTP/1.1\r\nHost: shop.example\r\n":                                    "405",
		"GET //" + host + "/ HTTP/1.1\r\nHost: x\r\n":                                   "200", // a path, and ours
		"GET @" + host + "/ HTTP/1.1\r\nHost: x\r\n":                                    "400",
		"GET " + host + "/ HTTP/1.1\r\nHost: x\r\n":                                     "400",
		"GET http://shop.example/ HTTP/1.1\r\nHost: other.example\r\n":                  "200", // the request line counts
		"GET * HTTP/1.1\r\nHost: x\r\n":                                                 "400",
		"GET /\\evil HTTP/1.1\r\nHost: x\r\n":                                           "400",
		"GET /http://" + host + "/ HTTP/1.1\r\nHost: x\r\n":                             "200", // a path, and ours
		"GET / HTTP/1.1\r\nHost: " + host + "\r\nX-Original-Url: " + other.URL + "\r\n": "200",
	} {
		status := rawStatus(t, b.addr, request+"Connection: close\r\n\r\n")
		if status != want {
			t.Errorf("%q: %s, want %s", request, status, want)
		}
	}
	if n := len(other.requests()); n != 0 {
		t.Errorf("%d requests reached a server that is not configured", n)
	}
}

func TestGateway_ChecksAnEncryptedUpstreamsCertificate(t *testing.T) {
	t.Parallel()
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) }))
	secure.EnableHTTP2 = true
	secure.StartTLS()
	t.Cleanup(secure.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBed(t, setup{gateway: func(c *config.Gateway) {
		c.Upstreams = []config.Upstream{{Name: "known", URL: secure.URL, CAFile: ca}, {Name: "unknown", URL: secure.URL}}
		c.Routes = []config.Route{{Upstream: "known"}, {Path: "/unknown", Upstream: "unknown"}}
	}})
	if got := b.get("/"); got.StatusCode != http.StatusOK || got.body != "HTTP/2.0" {
		t.Errorf("%s %s", got.Status, got.body)
	}
	if got := b.get("/unknown"); got.StatusCode != http.StatusBadGateway {
		t.Errorf("an upstream whose certificate nobody signed: %s", got.Status)
	}
}

func TestGateway_SpeaksHTTP2ToClients(t *testing.T) {
	t.Parallel()
	b := newBed(t, setup{rules: []sluice.Rule{perIP(1)}})
	pair := httptest.NewUnstartedServer(nil)
	pair.StartTLS() // for its certificate
	t.Cleanup(pair.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := httpserver.New(b.handler, httpserver.Options{Streams: true, TLS: &tls.Config{Certificates: pair.TLS.Certificates, MinVersion: tls.VersionTLS12}})
	go func() { _ = s.Serve(l) }() // ends with Shutdown
	t.Cleanup(func() { _ = s.Shutdown(context.WithoutCancel(t.Context())) })

	client := pair.Client().Transport.(*http.Transport).Clone()
	client.ForceAttemptHTTP2 = true
	t.Cleanup(client.CloseIdleConnections)
	for _, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+l.Addr().String()+"/x", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.ProtoMajor != 2 || res.StatusCode != want || res.Header.Get("RateLimit") == "" {
			t.Errorf("%s %s %v, want %d", res.Proto, res.Status, res.Header, want)
		}
	}
	seen := b.upstream.requests()
	if len(seen) != 1 || seen[0].ProtoMajor != 1 || seen[0].Header.Get("X-Forwarded-Proto") != "https" {
		t.Errorf("the upstream saw %v", seen)
	}
}

// rawStatus sends bytes and returns the status code of the answer, or "" when there is none.
func rawStatus(t *testing.T, addr, request string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(c).ReadString('\n')
	_, rest, _ := strings.Cut(line, " ")
	status, _, _ := strings.Cut(rest, " ")
	return strings.TrimSpace(status)
}
