package edge_test

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/identity/addresscases"
	"github.com/sluicehq/sluice/internal/identity/edge"
)

// FuzzClientAddress compares the walk with one that is written for reading: it splits everything, then looks.
func FuzzClientAddress(f *testing.F) {
	for _, c := range addresscases.All() {
		if lines := c.Header["X-Forwarded-For"]; lines != nil {
			f.Add(c.Peer, strings.Join(lines, "\n"), c.Options.Depth)
		}
	}
	f.Fuzz(func(t *testing.T, peer, header string, depth int) {
		from, err := netip.ParseAddr(peer)
		if err != nil || depth < 0 || depth > 32 {
			t.Skip()
		}
		e := newEdge(t, edge.Options{Trusted: addresscases.Proxies(), Depth: depth})
		lines := strings.Split(header, "\n")
		got := e.Client(from, http.Header{"X-Forwarded-For": lines})
		if want := referenceClient(from, lines, depth); got != want {
			t.Errorf("peer %s, header %q, depth %d: got %s, want %s", peer, lines, depth, got, want)
		}
	})
}

func referenceClient(peer netip.Addr, lines []string, depth int) netip.Addr {
	client := referencePlain(peer)
	if !referenceTrusted(client) {
		return referenceCounted(client)
	}
	entries := strings.Split(strings.Join(lines, ","), ",")
	slices.Reverse(entries)
	for i, entry := range entries[:min(len(entries), 32)] {
		addr, ok := referenceParse(strings.Trim(entry, " \t"))
		if !ok {
			break
		}
		client = addr
		if depth > 0 && i+1 == depth || depth == 0 && !referenceTrusted(addr) {
			break
		}
	}
	return referenceCounted(client)
}

func referenceTrusted(a netip.Addr) bool {
	return slices.ContainsFunc(addresscases.Proxies(), func(p netip.Prefix) bool { return p.Contains(a) })
}

func referencePlain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

func referenceCounted(a netip.Addr) netip.Addr {
	text := net.IP(a.AsSlice())
	if a.Is6() && strings.HasPrefix(a.StringExpanded(), "0064:ff9b:0000:0000:0000:0000:") {
		v4 := text[12:]
		inside := v4.IsPrivate() || v4.IsLoopback() || v4.IsLinkLocalUnicast() || v4.IsMulticast() || v4.IsUnspecified() ||
			v4.Equal(net.IPv4bcast) || v4[0] == 100 && v4[1] >= 64 && v4[1] < 128
		if !inside {
			return netip.AddrFrom4([4]byte(v4))
		}
	}
	return a
}

func referenceParse(s string) (netip.Addr, bool) {
	if len(s) > 96 {
		return netip.Addr{}, false
	}
	if host, port, err := net.SplitHostPort(s); err == nil && (strings.HasPrefix(s, "[") == strings.Contains(host, ":")) {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil || len(port) > 5 {
			return netip.Addr{}, false
		}
		s = host
	} else if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") && strings.Contains(s, ":") {
		s = s[1 : len(s)-1]
	}
	a, err := netip.ParseAddr(s)
	return referencePlain(a), err == nil
}

// FuzzForwarded: nothing that stands in front of a proxy's element changes how the element is read, and two ways to send
// the same lines are one.
func FuzzForwarded(f *testing.F) {
	for _, c := range addresscases.All() {
		if lines := c.Header["Forwarded"]; lines != nil {
			f.Add(strings.Join(lines, ","))
		}
	}
	e, err := edge.New(edge.Options{Trusted: addresscases.Proxies(), Header: edge.Forwarded})
	if err != nil {
		f.Fatal(err)
	}
	peer := netip.MustParseAddr("10.0.0.1")
	client := func(lines ...string) netip.Addr { return e.Client(peer, http.Header{"Forwarded": lines}) }
	f.Fuzz(func(t *testing.T, sent string) {
		if got := client(sent); !got.IsValid() {
			t.Errorf("%q: no address", sent)
		}
		for _, written := range []string{`for=203.0.113.9`, `for="203.0.113.9:80";by="a,\"b"`, `proto=https;for="203.0.113.9", for="[fd00::1]"`} {
			together, apart := client(sent+","+written), client(sent, written)
			if want := netip.MustParseAddr("203.0.113.9"); together != want || apart != want {
				t.Errorf("%q before %q: got %s in one line and %s in two, want %s", sent, written, together, apart, want)
			}
		}
	})
}
