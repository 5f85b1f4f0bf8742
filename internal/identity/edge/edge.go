// Package edge says what may be believed of the header fields that proxies in front of us set: which of them tell the
// client's address, which tell who calls, and which an upstream must never see because the client wrote them.
package edge

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
)

// Edge knows the proxies in front of us. It never changes, and is safe for concurrent use.
type Edge struct {
	trusted   trusted
	depth     int
	header    string // the canonical name of the field that tells the client's address
	forwarded bool   // it is Forwarded
	prefix    int
	identity  map[string]string // folded name → canonical name
}

// The fields that tell a client's address, as Options.Header names them.
const (
	XForwardedFor = "x-forwarded-for"
	Forwarded     = "forwarded"
)

// Options describe the proxies. The zero value believes nobody.
type Options struct {
	// Trusted are the proxies whose word is taken. Default: none.
	Trusted []netip.Prefix
	// Depth is how many proxies stand in front of us, each appending to the header; 0 counts by Trusted.
	// With Trusted, a peer must also be among those; without, every peer is taken for the last of the proxies.
	Depth int
	// Header is XForwardedFor or Forwarded; the other is never read. Default XForwardedFor.
	Header string
	// IPv6Prefix is how many bits of an IPv6 address make a client, from 48 to 64. Default 64.
	IPv6Prefix int
	// Identity names the fields that trusted proxies set about the caller. Default: none.
	Identity []string
}

// maxNameLength bounds the names of identity fields, so that names are compared without allocating.
const maxNameLength = 64

// New returns an edge, or all faults of the options.
func New(o Options) (*Edge, error) {
	if o.Header == "" {
		o.Header = XForwardedFor
	}
	if o.IPv6Prefix == 0 {
		o.IPv6Prefix = 64
	}
	ranges, err := newTrusted(o.Trusted)
	faults := []error{err, o.check()}
	e := &Edge{trusted: ranges, depth: o.Depth, prefix: o.IPv6Prefix, identity: map[string]string{}}
	e.header, e.forwarded = http.CanonicalHeaderKey(o.Header), o.Header == Forwarded
	for _, name := range o.Identity {
		folded, fits := fold(name, new([maxNameLength]byte))
		switch {
		case !fits || len(folded) == 0:
			faults = append(faults, fmt.Errorf("headers: %q is not a name of 1 to %d characters", name, maxNameLength))
		case tellsAddress(string(folded)):
			faults = append(faults, fmt.Errorf("headers: %q tells an address or a host, not who calls: choose another field", name))
		default:
			e.identity[string(folded)] = http.CanonicalHeaderKey(name)
		}
	}
	return e, errors.Join(faults...)
}

func (o *Options) check() error {
	var faults []error
	if o.Header != XForwardedFor && o.Header != Forwarded {
		faults = append(faults, fmt.Errorf("forwarded: %q is not %q or %q", o.Header, XForwardedFor, Forwarded))
	}
	if o.IPv6Prefix < 48 || o.IPv6Prefix > 64 {
		faults = append(faults, fmt.Errorf("ipv6_prefix: %d is not from 48 to 64", o.IPv6Prefix))
	}
	if o.Depth < 0 || o.Depth > maxHops {
		faults = append(faults, fmt.Errorf("trusted_depth: %d is not from 0 to %d", o.Depth, maxHops))
	}
	if len(o.Identity) > 0 && len(o.Trusted) == 0 {
		faults = append(faults, errors.New("headers: anyone could set them while trusted_proxies is empty: list the proxies that do"))
	}
	return errors.Join(faults...)
}

// Trusted tells whether a peer's word about its client is taken.
func (e *Edge) Trusted(peer netip.Addr) bool {
	if len(e.trusted) == 0 {
		return e.depth > 0
	}
	return e.trusted.has(plain(peer))
}
