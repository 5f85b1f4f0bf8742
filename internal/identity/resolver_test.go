package identity_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/identity"
)

var (
	proxy  = netip.MustParseAddr("10.0.0.1")
	client = netip.MustParseAddr("203.0.113.5")
)

func proxies() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} }

// fakeKeys knows one key.
type fakeKeys struct{}

func (fakeKeys) Verify(_ context.Context, key string) (sluice.Subject, bool) {
	return sluice.Subject{APIKey: "k_1", Tenant: "acme", Tier: "gold"}, key == "good-key"
}

func fields(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func TestSubject_FirstSourceThatAppliesWins(t *testing.T) {
	t.Parallel()
	issuer := issuerByURL()
	issuer.JWKSURL, issuer.Secret, issuer.Algorithms = "", config.Secret(secret), []string{"HS256"}
	cfg := config.Identity{
		TrustedProxies: proxies(),
		Headers:        config.IdentityHeaders{User: "X-User", Tenant: "X-Tenant", Tier: "X-Tier"},
		JWT:            []config.Issuer{issuer},
	}
	token := hs256(t, claims("org", "initech"))
	all := []string{"X-Forwarded-For", "192.0.2.9", "X-User", "alice", "Authorization", "Bearer " + token, "X-API-Key", "good-key"}
	ip := netip.MustParseAddr("192.0.2.9")
	byKey := sluice.Subject{APIKey: "k_1", Tenant: "acme", Tier: "gold", IP: ip}
	byToken := sluice.Subject{User: "u_42", Tenant: "initech", IP: ip}
	byHeader := sluice.Subject{User: "alice", IP: ip}
	for _, c := range []struct {
		name  string
		order []string
		peer  netip.Addr
		h     http.Header
		want  sluice.Subject
	}{
		{"default order", nil, proxy, fields(all...), byKey},
		{"token first", []string{"jwt", "api_key", "header"}, proxy, fields(all...), byToken},
		{"header first", []string{"header", "jwt"}, proxy, fields(all...), byHeader},
		{"no source", []string{}, proxy, fields(all...), sluice.Subject{IP: ip}},
		{"unknown key falls through", nil, proxy, fields(append(all[:6:6], "X-API-Key", "bad")...), byToken},
		{"two keys fall through", nil, proxy, fields(append(all, "X-API-Key", "good-key")...), byToken},
		{"key as bearer", nil, proxy, fields("X-Forwarded-For", "192.0.2.9", "Authorization", "bearer  good-key"), byKey},
		{"bad token falls through", nil, proxy, fields("X-Forwarded-For", "192.0.2.9", "X-User", "alice", "Authorization", "Bearer "+token+"x"), byHeader},
		{"header of a client is not believed", nil, client, fields("X-User", "alice", "X-Tenant", "acme"), sluice.Subject{IP: client}},
		{"two users fall through", nil, proxy, fields("X-User", "alice", "X-User", "bob"), sluice.Subject{IP: proxy}},
		{"a good user with two tenants falls through", nil, proxy, fields("X-User", "alice", "X-Tenant", "a", "X-Tenant", "b"), sluice.Subject{IP: proxy}},
		{"control characters fall through", nil, proxy, fields("X-User", "al\x01ice"), sluice.Subject{IP: proxy}},
		{"256 characters fall through", nil, proxy, fields("X-User", strings.Repeat("a", 256)), sluice.Subject{IP: proxy}},
		{"an alias is not read", nil, proxy, fields("X_User", "alice", "X.User", "bob"), sluice.Subject{IP: proxy}},
		{"tenant and tier alone", nil, proxy, fields("X-Tenant", "acme", "X-Tier", "gold"), sluice.Subject{Tenant: "acme", Tier: "gold", IP: proxy}},
		{"nothing at all", nil, client, nil, sluice.Subject{IP: client}},
		{"no address", nil, netip.Addr{}, fields(all...), sluice.Subject{APIKey: "k_1", Tenant: "acme", Tier: "gold", IP: netip.IPv4Unspecified()}},
	} {
		cfg.Order = c.order
		r := newResolver(t, cfg, identity.Options{Keys: fakeKeys{}})
		if got := r.Subject(t.Context(), c.peer, c.h); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestSubject_WithoutSourcesAllocatesNothing(t *testing.T) {
	r := newResolver(t, config.Identity{}, identity.Options{})
	ctx, h := t.Context(), fields("X-Forwarded-For", "1.1.1.1", "Authorization", "Bearer x", "X-Api-Key", "y")
	if n := testing.AllocsPerRun(100, func() { r.Subject(ctx, client, h) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestAttributes_AreCutAndAbsentOnesLeftOut(t *testing.T) {
	t.Parallel()
	r := newResolver(t, config.Identity{Attributes: map[string]string{"plan": "x-plan", "app": "X-App"}}, identity.Options{})
	if got := r.Attributes(fields("X-Other", "1", "X-App", "")); got != nil {
		t.Errorf("got %v, want nil", got)
	}
	got := r.Attributes(fields("X-Plan", strings.Repeat("p", 5000)))
	if want := map[string]string{"plan": strings.Repeat("p", 1024)}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %d attributes, plan of %d bytes; want 1, of 1024", len(got), len(got["plan"]))
	}
}

func TestStrip_KeepsWhatATrustedProxySays(t *testing.T) {
	t.Parallel()
	r := newResolver(t, config.Identity{TrustedProxies: proxies(), Headers: config.IdentityHeaders{User: "x-user"}}, identity.Options{})
	if !r.Trusted(proxy) || r.Trusted(client) {
		t.Errorf("trusted: proxy %t, client %t; want true, false", r.Trusted(proxy), r.Trusted(client))
	}
	fromProxy, fromClient := fields("X-User", "alice", "X_user", "mallory"), fields("X-User", "mallory", "Accept", "*/*")
	r.Strip(proxy, fromProxy)
	r.Strip(client, fromClient)
	if want := fields("X-User", "alice"); !reflect.DeepEqual(fromProxy, want) {
		t.Errorf("from a proxy: left %v, want %v", fromProxy, want)
	}
	if want := fields("Accept", "*/*"); !reflect.DeepEqual(fromClient, want) {
		t.Errorf("from a client: left %v, want %v", fromClient, want)
	}
}

func TestPeer_IsTheSocket(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{"203.0.113.5:80": "203.0.113.5", "[fe80::1%eth0]:80": "fe80::1%eth0", "@": "invalid IP", "": "invalid IP"} {
		req := httptest.NewRequest(http.MethodGet, "/", nil)
		req.RemoteAddr = remote
		if got := identity.Peer(req).String(); got != want {
			t.Errorf("%q: got %s, want %s", remote, got, want)
		}
	}
}

func TestNew_TellsAllFaults(t *testing.T) {
	t.Parallel()
	_, err := identity.New(config.Identity{
		Order:         []string{"jwt", "cookie", "jwt"},
		ProxyProtocol: true,
		IPv6Prefix:    32,
		JWT: []config.Issuer{
			{},
			{Issuer: "a", Audience: "x", Algorithms: []string{"none", "HS256", "XS1"}, JWKSURL: "http://id.example/keys"},
			{Issuer: "b", Audience: "x", Algorithms: []string{"RS256", "HS512"}, Secret: config.Secret(secret)},
			{Issuer: "c", Audience: "x", Algorithms: []string{"RS256"}, JWKSURL: "https://id.example/keys", JWKSFile: "keys.json"},
			{Issuer: "d", Audience: "x", Algorithms: []string{"RS256"}, JWKSFile: "no-such-file.json"},
			{Issuer: "e", Audience: "x", Algorithms: []string{"RS256"}, JWKSURL: "https://user:pass@id.example/keys"},
		},
	}, identity.Options{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`"cookie" is not a source`, `"jwt" is listed twice`, "proxy_protocol", "ipv6_prefix: 32", "issuer: missing", "audience: missing", "algorithms: missing",
		`"none" is not supported`, "HS256 needs secret", `"XS1" is not supported`, "is not https", "RS256 does not work with secret", "too few for HS512",
		"give one of jwks_url, jwks_file and secret", "no-such-file.json", "without a password",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to mention %q", err, want)
		}
	}
	if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), ":pass@") {
		t.Errorf("the error tells a secret: %v", err)
	}
}
