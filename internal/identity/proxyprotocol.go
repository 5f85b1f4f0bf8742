package identity

import (
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/pires/go-proxyproto"
)

// proxyHeaderTimeout is how long a balancer may take to send its first line; it sends it with the first packet.
const proxyHeaderTimeout = 5 * time.Second

// ProxyListener reads the PROXY protocol, version 1 or 2, at the start of every connection from a trusted address, and
// gives the connection the client's address. Of other peers it reads nothing: their first bytes are the request's.
//
// A trusted balancer must send the header. Were it optional, a client behind a balancer that sends none could write one
// itself. Connections without one or with a broken one end at their first read. The header is read by whoever serves the
// connection, never by Accept, so a slow one holds up nobody else. Connections that a balancer opens for itself (LOCAL
// and UNKNOWN) keep its own address.
//
// The function is called for every connection, so what is trusted may change.
func ProxyListener(l net.Listener, trusted func(netip.Addr) bool) net.Listener {
	return &proxyproto.Listener{
		Listener:          l,
		ReadHeaderTimeout: proxyHeaderTimeout,
		ValidateHeader:    onlyInternet,
		ConnPolicy: func(conn proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
			peer, ok := conn.Upstream.(*net.TCPAddr)
			if !ok || !trusted(peer.AddrPort().Addr()) {
				return proxyproto.SKIP, nil
			}
			return proxyproto.REQUIRE, nil
		},
	}
}

// onlyInternet refuses addresses that no limit could count by.
func onlyInternet(h *proxyproto.Header) error {
	if h.Command.IsLocal() {
		return nil
	}
	if _, ok := h.SourceAddr.(*net.TCPAddr); !ok {
		return errors.New("PROXY protocol: the client has no TCP address")
	}
	return nil
}
