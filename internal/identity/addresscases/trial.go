package addresscases

import (
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/internal/identity/edge"
)

// Trial is a header that holds the client behind some proxies, and the same header as it looks when the client sent
// something along: whatever that is, it must change nothing.
type Trial struct {
	Options       edge.Options
	Peer, Client  netip.Addr
	Before, After http.Header
}

// NewTrial makes a trial, of networks or of depth, with X-Forwarded-For or Forwarded.
func NewTrial(rng *rand.Rand) Trial {
	t := Trial{Options: edge.Options{Trusted: Proxies()}, Peer: proxyAddr(rng), Client: clientAddr(rng)}
	name := "X-Forwarded-For"
	if rng.IntN(2) == 0 {
		t.Options.Header, name = edge.Forwarded, "Forwarded"
	}
	proxies := rng.IntN(5)
	if rng.IntN(3) == 0 {
		t.Options.Trusted, t.Options.Depth = nil, proxies+1
	}
	entries := []string{t.write(rng, t.Client)}
	for range proxies {
		entries = append(entries, t.write(rng, proxyAddr(rng)))
	}
	t.Before = http.Header{name: inLines(rng, entries)}
	t.After = http.Header{name: inLines(rng, slices.Concat(t.sent(rng), entries))}
	return t
}

// write writes an address as a proxy would.
func (t *Trial) write(rng *rand.Rand, a netip.Addr) string {
	node := a.String()
	port := rng.IntN(3) == 0
	if a.Is6() && (port || rng.IntN(2) == 0) {
		node = "[" + node + "]"
	}
	if port {
		node += ":4711"
	}
	if t.Options.Header != edge.Forwarded {
		return node
	}
	element := "for=" + node
	if a.Is6() || port || rng.IntN(2) == 0 {
		element = `for="` + node + `"`
	}
	switch rng.IntN(4) {
	case 0:
		return element + ";proto=https"
	case 1:
		return `by="a,b\"";` + element
	}
	return element
}

// sent is what a client sends along: addresses, those of proxies among them, and pieces that could upset a parser.
func (t *Trial) sent(rng *rand.Rand) []string {
	var entries []string
	for range 1 + rng.IntN(4) {
		switch rng.IntN(4) {
		case 0:
			entries = append(entries, t.write(rng, clientAddr(rng)))
		case 1:
			entries = append(entries, t.write(rng, proxyAddr(rng)))
		default:
			entries = append(entries, noise(rng))
		}
	}
	return entries
}

var pieces = []string{
	",", `"`, `\`, `\"`, "[", "]", ":", ";", "=", " ", "\t", "%", "for=", "FOR=", `for="`, "unknown", "_x", "1.1.1.1", "10.0.0.1", "::", "fd00::1",
	"[fd00::1]:1", "::ffff:10.0.0.1", "64:ff9b::", "\x00", "ä", "\xff", "0", "9999999999", "proto=https",
}

func noise(rng *rand.Rand) string {
	var b strings.Builder
	for range rng.IntN(8) {
		b.WriteString(pieces[rng.IntN(len(pieces))])
	}
	return b.String()
}

// inLines joins entries by commas, or begins a new line, as proxies do.
func inLines(rng *rand.Rand, entries []string) []string {
	lines := []string{entries[0]}
	for _, e := range entries[1:] {
		switch last := len(lines) - 1; rng.IntN(4) {
		case 0:
			lines = append(lines, e)
		case 1:
			lines[last] += "," + e
		default:
			lines[last] += ", " + e
		}
	}
	return lines
}

func proxyAddr(rng *rand.Rand) netip.Addr {
	all := Proxies()
	return inside(rng, all[rng.IntN(len(all))])
}

func clientAddr(rng *rand.Rand) netip.Addr {
	all := prefixes("203.0.113.0/24", "9.0.0.0/8", "11.0.0.0/8", "127.0.0.2/32", "2001:db8::/48", "2001:db8:ce::/48", "fc00::/8", "::1/128")
	return inside(rng, all[rng.IntN(len(all))])
}

// inside returns a random address of a network.
func inside(rng *rand.Rand, p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for bit := p.Bits(); bit < len(b)*8; bit++ {
		b[bit/8] |= byte(rng.IntN(2)) << (7 - bit%8)
	}
	a, _ := netip.AddrFromSlice(b) // cannot fail: the length is an address's
	return a
}
