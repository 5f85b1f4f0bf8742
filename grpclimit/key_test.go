package grpclimit_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/sluicehq/sluice/grpclimit"
)

func TestKeys_NameWhomACallIsCountedFor(t *testing.T) {
	t.Parallel()
	byName := grpclimit.ByMetadata("X-User")
	for _, c := range []struct {
		name string
		key  grpclimit.KeyFunc
		from string
		md   []string
		want string
	}{
		{"IPv4", grpclimit.ByPeer, "192.0.2.1:80", nil, "ip:192.0.2.1"},
		{"IPv4 in IPv6", grpclimit.ByPeer, "[::ffff:192.0.2.1]:80", nil, "ip:192.0.2.1"},
		{"IPv6", grpclimit.ByPeer, "[2001:db8::7]:80", nil, "ip:2001:db8::/64"},
		{"method", grpclimit.ByMethod, "192.0.2.1:80", nil, "method:/s/m"},
		{"metadata", byName, "192.0.2.1:80", []string{"x-user", "u_42"}, "u_42"},
		{"no metadata", byName, "192.0.2.1:80", nil, "ip:192.0.2.1"},
		{"metadata twice", byName, "192.0.2.1:80", []string{"x-user", "a", "x-user", "b"}, "ip:192.0.2.1"},
		{"posing as an address", byName, "192.0.2.1:80", []string{"x-user", "ip:192.0.2.9"}, "ip:192.0.2.1"},
		{"posing as a method", byName, "192.0.2.1:80", []string{"x-user", "method:/s/m"}, "ip:192.0.2.1"},
		{"too long", byName, "192.0.2.1:80", []string{"x-user", strings.Repeat("u", 256)}, "ip:192.0.2.1"},
	} {
		req, err := c.key(callFrom(t, c.from, c.md), "/s/m")
		if err != nil || req.Subject.User != c.want || req.Route != "/s/m" || req.Method != http.MethodPost || !req.Subject.IP.IsValid() {
			t.Errorf("%s: %+v, %v, want user %q", c.name, req, err, c.want)
		}
	}
}

func callFrom(t *testing.T, addr string, md []string) context.Context {
	t.Helper()
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	ctx := peer.NewContext(t.Context(), &peer.Peer{Addr: tcp})
	return metadata.NewIncomingContext(ctx, metadata.Pairs(md...))
}

func TestByPeer_HasNoKeyForAUnixSocket(t *testing.T) {
	t.Parallel()
	unix := peer.NewContext(t.Context(), &peer.Peer{Addr: &net.UnixAddr{Name: "@", Net: "unix"}})
	if req, err := grpclimit.ByPeer(unix, "/s/m"); err == nil {
		t.Errorf("a Unix socket: %+v, want an error", req)
	}
}
