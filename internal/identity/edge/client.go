package edge

import (
	"encoding/binary"
	"net/http"
	"net/netip"
)

// maxHops bounds the walk. Real chains have a handful of proxies; a header that holds more was made to cost us time.
const maxHops = 32

// Client returns the address to count a request by. It is always valid.
//
// It is the peer's own, unless the peer is a trusted proxy. Then the header is walked from right to left: a proxy appends
// the address it was called from, so each entry is the word of the hop to its right, and as good as that hop. By
// trusted networks, the first hop that is not trusted is the client. By depth n, it is the n-th entry from the right: the
// first was written by the proxy next to us, the n-th by the outermost one, which saw the client's socket. One
// more to the left is what that client sent, and it can send anything.
//
// An entry that is no address, or the 33rd, ends the walk at the hop to its right: that one is known, and counting all
// such requests as the proxy's own neither lets them pass uncounted nor charges somebody else.
func (e *Edge) Client(peer netip.Addr, h http.Header) netip.Addr {
	peer = plain(peer)
	if !peer.IsValid() {
		// A socket without an address. One counter for all of them, since no rule by address would match otherwise.
		return netip.IPv4Unspecified()
	}
	if e.Trusted(peer) {
		peer = e.walk(peer, h[e.header])
	}
	return e.counted(peer)
}

func (e *Edge) walk(peer netip.Addr, lines []string) netip.Addr {
	client, hops := peer, hops{lines: lines, quoted: e.forwarded}
	for n := 1; n <= maxHops; n++ {
		entry, found := hops.next()
		if !found {
			break
		}
		addr, ok := e.parse(entry)
		if !ok {
			break
		}
		client = addr
		if n == e.depth || e.depth == 0 && !e.trusted.has(addr) {
			break
		}
	}
	return client
}

func (e *Edge) parse(entry string) (netip.Addr, bool) {
	if e.forwarded {
		node, ok := forwardedFor(entry)
		if !ok {
			return netip.Addr{}, false
		}
		return parseNode(node, true)
	}
	return parseNode(trimSpace(entry), false)
}

// nat64 is the well-known prefix that translators put before an IPv4 address.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// counted turns a client's address into what it is counted by. Stores count IPv6 by its /64, so an address is cut only
// where a client is made of fewer bits: rules, exemptions and blocks then still see single addresses.
func (e *Edge) counted(a netip.Addr) netip.Addr {
	if a.Is4() {
		return a
	}
	// Only after the walk: a proxy is trusted by its own address, never by one that it translates.
	if v4 := embedded(a); v4.IsValid() {
		return v4
	}
	if e.prefix < 64 {
		cut, _ := a.Prefix(e.prefix) // cannot fail: the prefix was checked
		return cut.Addr()
	}
	return a
}

// embedded returns the IPv4 address inside a NAT64 one. All clients of a translator share one /64, so without it they
// would share one counter. Addresses that are not global have no place there, and would pass for somebody inside.
func embedded(a netip.Addr) netip.Addr {
	if !nat64.Contains(a) {
		return netip.Addr{}
	}
	b := a.As16()
	v4 := netip.AddrFrom4([4]byte(b[12:]))
	sharedByCarrier := binary.BigEndian.Uint32(b[12:])>>22 == 100<<2|1 // 100.64.0.0/10
	if !v4.IsGlobalUnicast() || v4.IsPrivate() || sharedByCarrier {
		return netip.Addr{}
	}
	return v4
}
