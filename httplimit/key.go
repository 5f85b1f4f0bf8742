package httplimit

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"unicode/utf8"

	"github.com/sluicehq/sluice"
)

// KeyFunc makes of an HTTP request the question that is put to the limiter. The ready-made ones fill in route, method and
// address, so that rules may match and count by them, and always a user, so that no request escapes sluice.PerKey or
// another rule that counts by user for want of one. Write your own on top of RequestOf:
//
//	func(r *http.Request) (sluice.Request, error) {
//		req := httplimit.RequestOf(r)
//		req.Subject.Tenant = r.PathValue("tenant")
//		return req, nil
//	}
type KeyFunc func(r *http.Request) (sluice.Request, error)

// RequestOf returns what every HTTP request tells: its path as the route, its method, and the address of the socket.
// The address is missing where there is none, as on a Unix socket. No header is looked at.
//
// The route is the path, and not http.Request.Pattern, so that a rule means the same wherever the middleware stands.
func RequestOf(r *http.Request) sluice.Request {
	return sluice.Request{
		Subject: sluice.Subject{IP: socketAddr(r.RemoteAddr)},
		Route:   routeOf(r.URL.Path),
		Method:  r.Method,
	}
}

// routeOf keeps a question mark that is part of the path, sent as %3F, from being taken for the query's.
func routeOf(path string) string {
	if strings.IndexByte(path, '?') < 0 {
		return path
	}
	return strings.ReplaceAll(path, "?", "%3F")
}

// errNoAddr is what ByIP says of a request that came over a Unix socket, for instance.
var errNoAddr = errors.New("connection has no IP address")

// ByIP counts by the address of the socket, IPv6 by its /64. It never looks at X-Forwarded-For and the like, which
// clients can forge; behind a proxy every request therefore seems to come from the proxy.
//
// The user is named after the address, as in "ip:192.0.2.1" or "ip:2001:db8::/64".
func ByIP(r *http.Request) (sluice.Request, error) {
	req := RequestOf(r)
	if !req.Subject.IP.IsValid() {
		return req, errNoAddr
	}
	req.Subject.User = userOfAddr(req.Subject.IP)
	return req, nil
}

// ByUser counts by the user that the function finds in a request, for instance in the context, where authentication
// left it. A request without a user is counted by its address, as ByIP does; so is one whose user is longer than 255
// characters or begins like those that ByIP makes. ByUser panics when the function is nil.
func ByUser(user func(*http.Request) string) KeyFunc {
	if user == nil {
		panic("httplimit: ByUser needs a function")
	}
	return func(r *http.Request) (sluice.Request, error) {
		name := user(r)
		if !validUser(name) {
			return ByIP(r)
		}
		req := RequestOf(r)
		req.Subject.User = name
		return req, nil
	}
}

// ByHeader counts by the user that a header field names. Use it only behind a proxy that sets the field itself and
// drops what the client sent: a client that can choose its own name is not limited at all. A request without the
// field, or with several of it, is counted by its address, as described at ByUser. ByHeader panics when name is empty.
func ByHeader(name string) KeyFunc {
	if name == "" {
		panic("httplimit: ByHeader needs a name")
	}
	name = http.CanonicalHeaderKey(name)
	return ByUser(func(r *http.Request) string {
		if values := r.Header[name]; len(values) == 1 {
			return values[0]
		}
		return ""
	})
}

// maxUserLength is the longest id of a user, in characters.
const maxUserLength = 255

// addrPrefix begins the users that are named after an address. No other user may begin so, or he could spend what
// belongs to the clients of an address.
const addrPrefix = "ip:"

func validUser(name string) bool {
	return name != "" && utf8.RuneCountInString(name) <= maxUserLength && !strings.HasPrefix(name, addrPrefix)
}

// socketAddr reads what net/http says about the peer: address and port, or the address alone, which some routers'
// middleware leaves there.
func socketAddr(remote string) netip.Addr {
	if peer, err := netip.ParseAddrPort(remote); err == nil {
		return peer.Addr().Unmap().WithZone("")
	}
	addr, err := netip.ParseAddr(remote)
	if err != nil {
		return netip.Addr{}
	}
	return addr.Unmap().WithZone("")
}

// userOfAddr names a user after an address. Like the stores it takes a /64 of IPv6 for one client, which has all its
// addresses to choose from.
func userOfAddr(addr netip.Addr) string {
	var buf [64]byte
	name := append(buf[:0], addrPrefix...)
	if addr.Is4() {
		return string(addr.AppendTo(name))
	}
	network, _ := addr.Prefix(64) // cannot fail: the address is IPv6
	return string(network.AppendTo(name))
}
