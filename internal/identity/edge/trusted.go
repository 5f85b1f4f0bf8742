package edge

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// trusted are prefixes that do not overlap, in order. Prefixes either contain one another or are disjoint, so once the
// inner ones are gone only the last that starts at or before an address can contain it.
type trusted []netip.Prefix

func newTrusted(prefixes []netip.Prefix) (trusted, error) {
	var t trusted
	var faults []error
	for _, p := range prefixes {
		n := normal(p)
		switch {
		case !n.IsValid():
			faults = append(faults, fmt.Errorf("trusted_proxies: %v is not a network", p))
		case n.Bits() == 0:
			faults = append(faults, fmt.Errorf("trusted_proxies: %v is everybody, so any client could choose its address: list your proxies, or set trusted_depth", p))
		default:
			t = append(t, n)
		}
	}
	slices.SortFunc(t, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	outer := t[:0]
	for _, p := range t {
		if len(outer) == 0 || !outer[len(outer)-1].Contains(p.Addr()) {
			outer = append(outer, p)
		}
	}
	return outer, errors.Join(faults...)
}

// normal clears the host bits and writes IPv4 within IPv6 as IPv4, as plain does with addresses.
func normal(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked()
}

// has tells whether a plain address is inside.
func (t trusted) has(a netip.Addr) bool {
	low, high := 0, len(t)
	for low < high {
		if mid := (low + high) / 2; t[mid].Addr().Compare(a) <= 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low > 0 && t[low-1].Contains(a)
}

// plain drops the zone, which only this machine knows, and writes IPv4 within IPv6 as IPv4: dual-stack sockets say
// ::ffff:192.0.2.1, and all such addresses would else be one /64.
func plain(a netip.Addr) netip.Addr { return a.WithZone("").Unmap() }
