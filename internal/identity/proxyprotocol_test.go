package identity_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/identity"
)

// listen serves the address that a request came from, behind a listener that trusts 127.0.0.1 and not 127.0.0.2.
func listen(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	trusted := func(a netip.Addr) bool { return a == netip.MustParseAddr("127.0.0.1") }
	srv := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			fmt.Fprint(w, identity.Peer(req))
		}),
		ReadHeaderTimeout: 5 * time.Second,
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(identity.ProxyListener(l, trusted))
	}()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	return l.Addr().String()
}

func dial(t *testing.T, from, to string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 5 * time.Second}
	c, err := d.DialContext(t.Context(), "tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}

const get = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

// answer sends bytes and returns status and body, or "closed".
func answer(t *testing.T, c net.Conn, sent string) string {
	t.Helper()
	if _, err := io.WriteString(c, sent); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return "closed"
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return fmt.Sprintf("%d %s", resp.StatusCode, body)
}

// v2 writes a header of version 2.
func v2(command, family byte, block ...byte) string {
	var b bytes.Buffer
	b.WriteString("\r\n\r\n\x00\r\nQUIT\n")
	b.Write([]byte{0x20 | command, family, byte(len(block) >> 8), byte(len(block))})
	b.Write(block)
	return b.String()
}

func TestProxyListener_TakesTheAddressFromTrustedPeersOnly(t *testing.T) {
	t.Parallel()
	addr := listen(t)
	v4 := []byte{203, 0, 113, 9, 127, 0, 0, 1, 0x12, 0x34, 0, 80}
	v6 := append(append(netip.MustParseAddr("2001:db8::9").AsSlice(), netip.MustParseAddr("::1").AsSlice()...), 0x12, 0x34, 0, 80)
	tlv := append(append([]byte{}, v4...), 0x04, 0, 3, 1, 2, 3)
	for _, c := range []struct{ name, from, sent, want string }{
		{"version 1", "127.0.0.1", "PROXY TCP4 203.0.113.9 127.0.0.1 4660 80\r\n" + get, "200 203.0.113.9"},
		{"version 1, IPv6", "127.0.0.1", "PROXY TCP6 2001:db8::9 ::1 4660 80\r\n" + get, "200 2001:db8::9"},
		{"version 1, unknown", "127.0.0.1", "PROXY UNKNOWN\r\n" + get, "200 127.0.0.1"},
		{"version 2", "127.0.0.1", v2(1, 0x11, v4...) + get, "200 203.0.113.9"},
		{"version 2, IPv6", "127.0.0.1", v2(1, 0x21, v6...) + get, "200 2001:db8::9"},
		{"version 2, more fields", "127.0.0.1", v2(1, 0x11, tlv...) + get, "200 203.0.113.9"},
		{"version 2, local", "127.0.0.1", v2(0, 0x00) + get, "200 127.0.0.1"},
		{"version 2, local with an address", "127.0.0.1", v2(0, 0x11, v4...) + get, "200 127.0.0.1"},
		{"none from a trusted peer", "127.0.0.1", get, "closed"},
		{"two", "127.0.0.1", strings.Repeat("PROXY TCP4 203.0.113.9 127.0.0.1 4660 80\r\n", 2) + get, "400"},
		{"no address", "127.0.0.1", "PROXY TCP4 203.0.113.999 127.0.0.1 4660 80\r\n" + get, "closed"},
		{"IPv6 as IPv4", "127.0.0.1", "PROXY TCP4 2001:db8::9 ::1 4660 80\r\n" + get, "closed"},
		{"a port too many", "127.0.0.1", "PROXY TCP4 203.0.113.9 127.0.0.1 4660 80 81\r\n" + get, "closed"},
		{"no end of the line", "127.0.0.1", "PROXY TCP4 " + strings.Repeat("1", 200) + get, "closed"},
		{"a line feed alone", "127.0.0.1", "PROXY TCP4 203.0.113.9 127.0.0.1 4660 80\n" + get, "closed"},
		{"version 2, too short for its family", "127.0.0.1", v2(1, 0x11, v4[:8]...) + get, "closed"},
		{"version 2, unknown command", "127.0.0.1", v2(5, 0x11, v4...) + get, "closed"},
		{"version 2, unknown family", "127.0.0.1", v2(1, 0x41, v4...) + get, "closed"},
		{"version 2, no family", "127.0.0.1", v2(1, 0x00) + get, "closed"},
		{"version 2, datagrams", "127.0.0.1", v2(1, 0x12, v4...) + get, "closed"},
		{"version 2, Unix sockets", "127.0.0.1", v2(1, 0x31, make([]byte, 216)...) + get, "closed"},
		{"none from a client", "127.0.0.2", get, "200 127.0.0.2"},
		{"version 1 from a client", "127.0.0.2", "PROXY TCP4 203.0.113.9 127.0.0.1 4660 80\r\n" + get, "400"},
		{"version 2 from a client", "127.0.0.2", v2(1, 0x11, v4...) + get, "400"},
	} {
		if got := answer(t, dial(t, c.from, addr), c.sent); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestProxyListener_SlowHeadersHoldUpNobody(t *testing.T) {
	t.Parallel()
	addr := listen(t)
	var slow []net.Conn
	for range 50 {
		c := dial(t, "127.0.0.1", addr)
		_, _ = io.WriteString(c, v2(1, 0x11)[:10])
		slow = append(slow, c)
	}
	began := time.Now()
	if got := answer(t, dial(t, "127.0.0.1", addr), "PROXY TCP4 203.0.113.9 127.0.0.1 4660 80\r\n"+get); got != "200 203.0.113.9" {
		t.Errorf("got %q, want 200", got)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("took %s beside 50 slow ones", took)
	}
	for _, c := range slow[:3] {
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a slow one: got %v, want the connection closed", err)
		}
	}
}
