package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/httplimit"
)

func TestByIP_TakesTheSocketsAddressAndNoHeaders(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ remote, ip, user string }{
		{"192.0.2.1:1234", "192.0.2.1", "ip:192.0.2.1"},
		{"[::ffff:192.0.2.1]:1234", "192.0.2.1", "ip:192.0.2.1"},
		{"[2001:db8:1:2:3:4:5:6]:1234", "2001:db8:1:2:3:4:5:6", "ip:2001:db8:1:2::/64"},
		{"[fe80::1%eth0]:1234", "fe80::1", "ip:fe80::/64"},
		{"192.0.2.1", "192.0.2.1", "ip:192.0.2.1"},
		{"2001:db8::1", "2001:db8::1", "ip:2001:db8::/64"},
	} {
		r := httptest.NewRequest(http.MethodPost, "/api/v1/items?q=1", nil)
		r.RemoteAddr = tc.remote
		for _, name := range []string{"X-Forwarded-For", "Forwarded", "X-Real-Ip", "True-Client-Ip", "Cf-Connecting-Ip"} {
			r.Header.Set(name, "203.0.113.9")
		}
		req, err := httplimit.ByIP(r)
		if err != nil {
			t.Errorf("%s: %v", tc.remote, err)
		}
		if req.Subject.IP != netip.MustParseAddr(tc.ip) || req.Subject.User != tc.user {
			t.Errorf("%s: address %s and user %q, want %s and %q", tc.remote, req.Subject.IP, req.Subject.User, tc.ip, tc.user)
		}
		if req.Route != "/api/v1/items" || req.Method != http.MethodPost {
			t.Errorf("%s: %s %s, want POST /api/v1/items", tc.remote, req.Method, req.Route)
		}
	}
}

func TestByIP_RefusesToCountWithoutAnAddress(t *testing.T) {
	t.Parallel()
	for _, remote := range []string{"", "@", "/run/app.sock", "localhost:80", "192.0.2.1:"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = remote
		if req, err := httplimit.ByIP(r); err == nil {
			t.Errorf("%q: user %q, want an error", remote, req.Subject.User)
		}
	}
}

func TestByHeader_FallsBackToTheAddress(t *testing.T) {
	t.Parallel()
	const byAddress = "ip:192.0.2.1" // that of httptest's requests
	for _, tc := range []struct {
		name   string
		values []string
		want   string
	}{
		{"one", []string{"alice"}, "alice"},
		{"none", nil, byAddress},
		{"empty", []string{""}, byAddress},
		{"two", []string{"alice", "bob"}, byAddress},
		{"the longest", []string{strings.Repeat("ä", 255)}, strings.Repeat("ä", 255)},
		{"too long", []string{strings.Repeat("ä", 256)}, byAddress},
		{"that of another address", []string{"ip:203.0.113.9"}, byAddress},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header["X-User"] = tc.values
		req, err := httplimit.ByHeader("x-user")(r)
		if err != nil || req.Subject.User != tc.want {
			t.Errorf("%s: user %q, error %v, want %q", tc.name, req.Subject.User, err, tc.want)
		}
		if !req.Subject.IP.IsValid() || req.Route != "/" || req.Method != http.MethodGet {
			t.Errorf("%s: address %s, %s %s, want all filled in", tc.name, req.Subject.IP, req.Method, req.Route)
		}
	}
}

func TestByUser_NeedsNoAddress(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "@"
	user := "alice"
	key := httplimit.ByUser(func(*http.Request) string { return user })
	if req, err := key(r); err != nil || req.Subject.User != user {
		t.Errorf("user %q, error %v, want alice", req.Subject.User, err)
	}
	user = ""
	if req, err := key(r); err == nil {
		t.Errorf("without user and address: user %q, want an error", req.Subject.User)
	}
}

func TestConstructors_PanicAtOnce(t *testing.T) {
	t.Parallel()
	for name, construct := range map[string]func(){
		"Middleware without key":     func() { httplimit.Middleware(limiterOf(t, fakeStore{}), nil, httplimit.Options{}) },
		"Middleware without checker": func() { httplimit.Middleware(nil, httplimit.ByIP, httplimit.Options{}) },
		"ByUser without function":    func() { httplimit.ByUser(nil) },
		"ByHeader without name":      func() { httplimit.ByHeader("") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			construct()
		}()
	}
}

func TestRequestOf_KeepsAQuestionMarkOfThePath(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodGet, "/a%3Fb/raw?q=1", nil)
	if got := httplimit.RequestOf(r).Route; got != "/a%3Fb/raw" {
		t.Errorf("got route %q, want /a%%3Fb/raw: cut at the question mark it would miss the rules of /a/{x}/raw", got)
	}
}
