package main

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/internal/identity/addresscases"
	"github.com/sluicehq/sluice/internal/identity/edge"
)

// faults are mistakes that others made. Were one not found, the trials would show nothing about us either.
var faults = []struct {
	name string
	make func(b *bar.Bar, o edge.Options) resolver
}{
	{"the leftmost entry", func(_ *bar.Bar, o edge.Options) resolver { return leftmost(o) }},
	{"depth off by one", func(b *bar.Bar, o edge.Options) resolver {
		if o.Depth > 0 {
			o.Depth++
		}
		return ours(b, o).Client
	}},
	{"only the first line", func(b *bar.Bar, o edge.Options) resolver {
		right := ours(b, o).Client
		return func(peer netip.Addr, h http.Header) netip.Addr {
			return right(peer, http.Header{fieldOf(o): h[fieldOf(o)][:1]})
		}
	}},
	{"quotes read from the left", func(b *bar.Bar, o edge.Options) resolver {
		right := ours(b, o).Client
		return func(peer netip.Addr, h http.Header) netip.Addr {
			return right(peer, http.Header{fieldOf(o): {rejoin(strings.Join(h[fieldOf(o)], ", "))}})
		}
	}},
	{"the first untrusted from the left", func(b *bar.Bar, o edge.Options) resolver { return skipping(b, o) }},
}

func fieldOf(o edge.Options) string {
	if o.Header == edge.Forwarded {
		return "Forwarded"
	}
	return "X-Forwarded-For"
}

// leftmost believes what stands first.
func leftmost(o edge.Options) resolver {
	return func(peer netip.Addr, h http.Header) netip.Addr {
		first, _, _ := strings.Cut(h[fieldOf(o)][0], ",")
		first = strings.Trim(strings.TrimPrefix(strings.TrimSpace(first), "for="), `"[]`)
		if a, err := netip.ParseAddr(first); err == nil {
			return a
		}
		return peer
	}
}

// rejoin keeps the commas that are outside of quotes when read from the left, and loses the others.
func rejoin(s string) string {
	var b strings.Builder
	inside, escaped := false, false
	for i := range len(s) {
		if s[i] == '"' && !escaped {
			inside = !inside
		}
		escaped = inside && !escaped && s[i] == '\\'
		if s[i] != ',' || !inside {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// skipping walks from the left and takes the first address that is no proxy's.
func skipping(b *bar.Bar, o edge.Options) resolver {
	trusted := ours(b, edge.Options{Trusted: addresscases.Proxies()})
	return func(peer netip.Addr, h http.Header) netip.Addr {
		for entry := range strings.SplitSeq(strings.Join(h[fieldOf(o)], ","), ",") {
			entry = strings.Trim(strings.TrimPrefix(strings.TrimSpace(entry), "for="), `"[]`)
			if a, err := netip.ParseAddr(entry); err == nil && !trusted.Trusted(a) {
				return a
			}
		}
		return peer
	}
}
