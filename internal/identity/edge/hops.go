package edge

import (
	"net/netip"
	"strings"
)

// hops yields the entries of a header from right to left, over all its lines: several lines mean the same as one with
// commas. What stands further left never changes what was yielded, not even an open quote.
type hops struct {
	lines   []string
	quoted  bool // commas inside quoted strings do not separate
	rest    string
	started bool // rest has entries left
}

// next returns the next entry to the left, spaces included.
func (h *hops) next() (entry string, found bool) {
	if !h.started {
		if len(h.lines) == 0 {
			return "", false
		}
		last := len(h.lines) - 1
		h.rest, h.lines, h.started = h.lines[last], h.lines[:last], true
	}
	var comma int
	if h.quoted {
		comma = lastCommaOutsideQuotes(h.rest)
	} else {
		comma = strings.LastIndexByte(h.rest, ',')
	}
	entry = h.rest[comma+1:]
	if comma < 0 {
		h.started = false
	} else {
		h.rest = h.rest[:comma]
	}
	return entry, true
}

// maxNodeLength is above any address with zone, brackets and port.
const maxNodeLength = 96

// parseNode reads an address as proxies write it: 192.0.2.1, 192.0.2.1:80, 2001:db8::1, [2001:db8::1], [2001:db8::1]:80.
// Forwarded may hide the port: 192.0.2.1:_p.
func parseNode(s string, obfuscated bool) (netip.Addr, bool) {
	if s == "" || len(s) > maxNodeLength {
		return netip.Addr{}, false
	}
	if s[0] == '[' {
		host, port, closed := strings.Cut(s[1:], "]")
		if !closed || !strings.Contains(host, ":") || port != "" && !isPort(port, obfuscated) {
			return netip.Addr{}, false
		}
		return parseAddr(host)
	}
	if colon := strings.IndexByte(s, ':'); colon >= 0 && colon == strings.LastIndexByte(s, ':') {
		if !isPort(s[colon:], obfuscated) {
			return netip.Addr{}, false
		}
		s = s[:colon]
	}
	return parseAddr(s)
}

// parseAddr drops the zone before netip sees it, which would keep a copy.
func parseAddr(s string) (netip.Addr, bool) {
	host, zone, zoned := strings.Cut(s, "%")
	a, err := netip.ParseAddr(host)
	if err != nil || zoned && (zone == "" || !a.Is6()) {
		return netip.Addr{}, false
	}
	return a.Unmap(), true
}

// isPort tells whether s is a colon and a port.
func isPort(s string, obfuscated bool) bool {
	if len(s) < 2 || s[0] != ':' {
		return false
	}
	s = s[1:]
	if obfuscated && s[0] == '_' {
		return len(s) > 1
	}
	port := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' || i == 5 {
			return false
		}
		port = port*10 + int(s[i]-'0')
	}
	return port <= 65535
}

func trimSpace(s string) string { return strings.Trim(s, " \t") }
