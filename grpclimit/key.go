package grpclimit

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/sluicehq/sluice"
)

// KeyFunc makes of a call the question that is put to the limiter. The ready-made ones fill in route, method and address,
// so that rules may match and count by them, and always a user, so that no call escapes sluice.PerKey or another rule
// that counts by user for want of one. Write your own on top of RequestOf.
type KeyFunc func(ctx context.Context, fullMethod string) (sluice.Request, error)

// ErrKey marks errors of key functions.
var ErrKey = errors.New("call has no key to count by")

// RequestOf returns what every call tells: the full method name as the route ("/shop.v1.Cart/Add"), POST as the method, as
// on the wire, and the address of the peer, which is missing where there is none, as on a Unix socket.
func RequestOf(ctx context.Context, fullMethod string) sluice.Request {
	return sluice.Request{
		Subject: sluice.Subject{IP: peerAddr(ctx)},
		Route:   fullMethod,
		Method:  http.MethodPost,
	}
}

var errNoAddr = errors.New("peer has no IP address")

// ByPeer counts by the address of the peer, IPv6 by its /64. It never looks at metadata, which clients can forge; behind
// a proxy every call therefore seems to come from the proxy. The user is named after the address, as in "ip:192.0.2.1".
func ByPeer(ctx context.Context, fullMethod string) (sluice.Request, error) {
	req := RequestOf(ctx, fullMethod)
	if !req.Subject.IP.IsValid() {
		return req, errNoAddr
	}
	req.Subject.User = userOfAddr(req.Subject.IP)
	return req, nil
}

// ByMethod counts all callers of a method together. The user is named after it, as in "method:/shop.v1.Cart/Add".
func ByMethod(ctx context.Context, fullMethod string) (sluice.Request, error) {
	req := RequestOf(ctx, fullMethod)
	req.Subject.User = methodPrefix + fullMethod
	return req, nil
}

// ByUser counts by the user that the function finds in a call's context, where authentication left it. A call without a
// user is counted by its address, as ByPeer does; so is one whose user is longer than 255 characters or begins like those
// that ByPeer and ByMethod make. ByUser panics when the function is nil.
func ByUser(user func(context.Context) string) KeyFunc {
	if user == nil {
		panic("grpclimit: ByUser needs a function")
	}
	return func(ctx context.Context, fullMethod string) (sluice.Request, error) {
		name := user(ctx)
		if !validUser(name) {
			return ByPeer(ctx, fullMethod)
		}
		req := RequestOf(ctx, fullMethod)
		req.Subject.User = name
		return req, nil
	}
}

// ByMetadata counts by the user that a metadata entry names. Use it only behind a proxy that sets the entry itself and
// drops what the client sent: a client that can choose its own name is not limited at all. A call without the entry, or
// with several of it, is counted by its address, as described at ByUser. ByMetadata panics when name is empty.
func ByMetadata(name string) KeyFunc {
	if name == "" {
		panic("grpclimit: ByMetadata needs a name")
	}
	return ByUser(func(ctx context.Context) string {
		if values := metadata.ValueFromIncomingContext(ctx, name); len(values) == 1 {
			return values[0]
		}
		return ""
	})
}

// maxUserLength is the longest id of a user, in characters.
const maxUserLength = 255

// The prefixes of users that are named after something else. No other user may begin so, or he could spend what belongs
// to others.
const (
	addrPrefix   = "ip:"
	methodPrefix = "method:"
)

func validUser(name string) bool {
	return name != "" && utf8.RuneCountInString(name) <= maxUserLength &&
		!strings.HasPrefix(name, addrPrefix) && !strings.HasPrefix(name, methodPrefix)
}

func peerAddr(ctx context.Context) netip.Addr {
	p, ok := peer.FromContext(ctx)
	if !ok || p.Addr == nil {
		return netip.Addr{}
	}
	if tcp, ok := p.Addr.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	parsed, err := netip.ParseAddrPort(p.Addr.String())
	if err != nil {
		return netip.Addr{}
	}
	return parsed.Addr().Unmap().WithZone("")
}

// userOfAddr names a user after an address. Like the stores it takes a /64 of IPv6 for one client.
func userOfAddr(addr netip.Addr) string {
	if addr.Is4() {
		return addrPrefix + addr.String()
	}
	network, _ := addr.Prefix(64) // cannot fail: the address is IPv6
	return addrPrefix + network.String()
}
