package addresscases

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/internal/identity/edge"
)

// FieldCase is a request's header, and what of it may go on to an upstream.
type FieldCase struct {
	Name    string
	Options edge.Options
	Peer    string
	Header  http.Header
	// Left are the names that stay.
	Left []string
}

// Check returns what is wrong with what is left, or nil.
func (c *FieldCase) Check(strip func(netip.Addr, http.Header)) error {
	h := c.Header.Clone()
	strip(netip.MustParseAddr(c.Peer), h)
	got, want := slices.Sorted(maps.Keys(h)), slices.Sorted(slices.Values(c.Left))
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s: peer %s, header %q: left %q, want %q", c.Name, c.Peer, c.Header, got, want)
	}
	return nil
}

// Fields returns the cases of header fields.
func Fields() []FieldCase {
	o := edge.Options{Trusted: Proxies(), Identity: []string{"X-User", "X-Tenant", "X-User-Tier"}}
	forwarded, numbered, open := o, edge.Options{Depth: 1}, edge.Options{}
	forwarded.Header = edge.Forwarded
	const client, proxy = "203.0.113.5", "10.0.0.1"
	return []FieldCase{
		field("identity of a client", o, client, "Accept X-User X-Tenant X-User-Tier", "Accept"),
		field("identity of a proxy", o, proxy, "Accept X-User X-Tenant X-User-Tier", "Accept X-User X-Tenant X-User-Tier"),
		field("traefik#8319, address and host of a client", o, client, "X-Forwarded-For X-Forwarded-Host X-Forwarded-Proto X-Forwarded-Prefix X-Real-Ip", ""),
		field("address and host of a proxy", o, proxy, "X-Forwarded-For X-Forwarded-Host X-Forwarded-Proto X-Real-Ip", "X-Forwarded-For X-Forwarded-Host X-Forwarded-Proto X-Real-Ip"),
		field("CVE-2026-35051, underscores from a client", o, client, "X_user X_forwarded_for X_forwarded_proto X_real_ip", ""),
		field("CVE-2026-35051, underscores that a proxy let pass", o, proxy, "X_user X-User X_forwarded_for X-Forwarded-For", "X-User X-Forwarded-For"),
		field("GHSA-x677-9fxg-v5c5, one underscore of two", o, proxy, "X-User_tier X_user-Tier X_user_tier", ""),
		field("GHSA-x677-9fxg-v5c5, dots", o, proxy, "X.user X-User.tier X.forwarded.for X.real.ip X-User", "X-User"),
		field("traefik#13720, all that becomes an underscore", o, proxy, "X!user X#user X$user X%user X&user X'user X*user X+user X^user X`user X|user X~user X-User", "X-User"),
		field("golang/go#50580, names in Connection do not protect", o, client, "Connection X-User X-Forwarded-For", "Connection"),
		field("the header that is not read, from a proxy", o, proxy, "Forwarded X-Forwarded-For", "X-Forwarded-For"),
		field("the same the other way round", forwarded, proxy, "Forwarded X-Forwarded-For X-Forwarded-Proto", "Forwarded X-Forwarded-Proto"),
		field("CDNs' fields of a client", o, client, "Cf-Connecting-Ip True-Client-Ip Fastly-Client-Ip X-Client-Ip X-Cluster-Client-Ip X-Azure-Clientip", ""),
		field("another path for frameworks that believe it", o, client, "X-Original-Url X-Rewrite-Url X-Original-Uri", ""),
		field("names that only begin alike", o, client, "X-Users X-User-Agent User-Agent X-Forward Forwarded-By X-Realm", "X-Users X-User-Agent User-Agent X-Forward Forwarded-By X-Realm"),
		field("long names are nobody's", o, client, "X-"+strings.Repeat("y", 100), "X-"+strings.Repeat("y", 100)),
		field("underscores of others stay", o, client, "My_header A.b", "My_header A.b"),
		field("nothing configured", open, client, "Accept X-User X-Forwarded-For X_forwarded_for", "Accept X-User"),
		field("by depth every peer is a proxy", numbered, client, "X-Forwarded-For X_forwarded_for", "X-Forwarded-For"),
		userFrom(client, "two values of a client", o, "", "alice", "bob"),
		userFrom(proxy, "two values of a proxy", o, "", "alice", "bob"),
		userFrom(proxy, "a control character from a proxy", o, "", "al\x1bice"),
		userFrom(proxy, "too long from a proxy", o, "", strings.Repeat("a", 256)),
		userFrom(proxy, "as long as may be", o, "X-User", strings.Repeat("ä", 255)),
	}
}

func field(name string, o edge.Options, peer, names, left string) FieldCase {
	h := http.Header{}
	for _, n := range strings.Fields(names) {
		h[n] = []string{"x"}
	}
	return FieldCase{name, o, peer, h, strings.Fields(left)}
}

func userFrom(peer, name string, o edge.Options, left string, values ...string) FieldCase {
	return FieldCase{name, o, peer, http.Header{"X-User": values}, strings.Fields(left)}
}
