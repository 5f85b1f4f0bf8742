package gateway

import (
	"errors"
	"net/netip"
	"testing"
)

func TestGuard_KeepsNamesFromLeadingToThisMachine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		host, addr string
		want       bool
	}{
		{"app.internal", "10.1.2.3", true},
		{"app.internal", "192.0.2.1", true},
		{"app.internal", "2001:db8::1", true},
		{"app.internal", "127.0.0.1", false},
		{"app.internal", "::1", false},
		{"app.internal", "::ffff:127.0.0.1", false},
		{"app.internal", "169.254.169.254", false},
		{"app.internal", "::ffff:169.254.169.254", false},
		{"app.internal", "fe80::1", false},
		{"app.internal", "fe80::1%eth0", false},
		{"app.internal", "fd00:ec2::254", false},
		{"app.internal", "100.100.100.200", false},
		{"app.internal", "192.0.0.192", false},
		{"app.internal", "0.0.0.0", false},
		{"app.internal", "::", false},
		{"app.internal", "224.0.0.1", false},
		{"localhost", "127.0.0.1", true},
		{"localhost", "::1", true},
		{"localhost", "169.254.169.254", false},
		{"127.0.0.1", "127.0.0.1", true},
		{"127.0.0.1", "127.0.0.2", false},
		{"169.254.169.254", "169.254.169.254", true},
		{"::1", "::1", true},
	} {
		if got := (guard{c.host}).allows(netip.MustParseAddr(c.addr)); got != c.want {
			t.Errorf("upstream %q at %s: allowed %v, want %v", c.host, c.addr, got, c.want)
		}
	}
	if err := (guard{"app.internal"}).control(t.Context(), "tcp4", "127.0.0.1:80", nil); !errors.Is(err, errGuarded) {
		t.Errorf("dial: %v", err)
	}
}
