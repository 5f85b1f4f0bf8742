// Package addresscases is the table of what the edge must make of addresses and header fields. The tests and the bar run
// the same one. Cases that happened to others carry the name of the thread where it was told.
package addresscases

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/internal/identity/edge"
)

// Case is one request and the address it is counted by.
type Case struct {
	Name    string
	Options edge.Options
	Peer    string
	Header  http.Header
	// Want is the address; with a slash, the network that stores count by.
	Want string
}

// Check returns what is wrong with the answer of a resolver, or nil.
func (c *Case) Check(client func(netip.Addr, http.Header) netip.Addr) error {
	peer, _ := netip.ParseAddr(c.Peer) // the empty peer is a case
	got := client(peer, c.Header)
	shown := got.String()
	if strings.Contains(c.Want, "/") {
		shown = counter(got)
	}
	if shown != c.Want {
		return fmt.Errorf("%s: peer %q, header %q: got %s, want %s", c.Name, c.Peer, c.Header, shown, c.Want)
	}
	return nil
}

// counter is what every store counts an address by.
func counter(a netip.Addr) string {
	bits := 32
	if a = a.Unmap(); a.Is6() {
		bits = 64
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return err.Error()
	}
	return p.String()
}

// All returns every case.
func All() []Case {
	return slices.Concat(threads(), direct(), chains(), notations(), unreadable(), ipv6(), depths(), forwardedChains(), forwardedNotations())
}

// row is a case among others with the same options. Lines of the header are separated by a line feed; a header that
// must be absent is "-".
type row struct{ name, peer, header, want string }

// table makes cases of rows. Extra fields are sent with every one of them.
func table(group string, o edge.Options, rows []row, extra ...string) []Case {
	field := "X-Forwarded-For"
	if o.Header == edge.Forwarded {
		field = "Forwarded"
	}
	var all []Case
	for _, r := range rows {
		h := http.Header{}
		if r.header != "-" {
			h[field] = strings.Split(r.header, "\n")
		}
		for i := 0; i+1 < len(extra); i += 2 {
			h[extra[i]] = append(h[extra[i]], extra[i+1])
		}
		all = append(all, Case{Name: group + ": " + r.name, Options: o, Peer: r.peer, Header: h, Want: r.want})
	}
	return all
}

// Proxies are the networks that most cases trust: the documentation's idea of a private network, and a CDN's.
func Proxies() []netip.Prefix {
	return prefixes("10.0.0.0/8", "127.0.0.1/32", "fd00::/8", "198.51.100.0/24", "2001:db8:cd::/48")
}

func prefixes(all ...string) []netip.Prefix {
	var list []netip.Prefix
	for _, text := range all {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

// chain writes n entries that are all the same.
func chain(entry string, n int) string {
	return strings.TrimSuffix(strings.Repeat(entry+", ", n), ", ")
}
