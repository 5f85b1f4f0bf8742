package counter

import (
	"encoding/binary"
	"net/netip"

	"github.com/sluicehq/sluice"
)

// A key is encoded in two pieces, each a sequence of typed, length-prefixed fields, so that no two keys encode alike
// whatever their values hold. The anchor decides where the counter lives; the rest tells counters of one anchor apart.

// Field types. They keep a user named "10.0.0.1" apart from the address, and an attribute from everything else.
const (
	fieldRule byte = iota + 1
	fieldTenant
	fieldUser
	fieldAPIKey
	fieldIPv4
	fieldIPv6
	fieldRoute
	fieldMethod
	fieldAttribute
)

// AppendAnchor appends the encoding of the key's anchor: the subject's value, or the rule where the key has none.
func AppendAnchor(dst []byte, k *sluice.Key) []byte {
	if i := k.Anchor(); i >= 0 {
		return appendPart(dst, &k.Parts[i])
	}
	return appendRule(dst, k)
}

// AppendRest appends the encoding of everything but the anchor: rule, algorithm, window and the other dimensions.
// The limit's numbers are left out, so that a changed limit goes on with the same counter.
func AppendRest(dst []byte, c *sluice.Charge) []byte {
	dst = appendRule(dst, &c.Key)
	dst = append(dst, byte(c.Limit.Algorithm))
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.Limit.Window))
	anchor := c.Key.Anchor()
	for i := range c.Key.Parts {
		if i != anchor {
			dst = appendPart(dst, &c.Key.Parts[i])
		}
	}
	return dst
}

func appendRule(dst []byte, k *sluice.Key) []byte {
	dst = appendField(dst, fieldRule, k.Namespace)
	return appendField(dst, fieldRule, k.Rule)
}

func appendPart(dst []byte, p *sluice.Part) []byte {
	switch p.Dimension {
	case sluice.Tenant:
		return appendField(dst, fieldTenant, p.Value)
	case sluice.User:
		return appendField(dst, fieldUser, p.Value)
	case sluice.APIKey:
		return appendField(dst, fieldAPIKey, p.Value)
	case sluice.IP:
		return appendIP(dst, p.IP)
	case sluice.Route:
		return appendField(dst, fieldRoute, p.Value)
	case sluice.Method:
		return appendField(dst, fieldMethod, p.Value)
	default:
		dst = appendField(dst, fieldAttribute, string(p.Dimension))
		return appendField(dst, fieldAttribute, p.Value)
	}
}

// appendIP counts IPv4 by the whole address and IPv6 by its /64, which one subscriber usually has to himself.
func appendIP(dst []byte, ip netip.Addr) []byte {
	ip = ip.Unmap()
	if ip.Is4() {
		b := ip.As4()
		return append(append(dst, fieldIPv4), b[:]...)
	}
	b := ip.As16()
	return append(append(dst, fieldIPv6), b[:8]...)
}

func appendField(dst []byte, kind byte, value string) []byte {
	dst = append(dst, kind)
	dst = binary.AppendUvarint(dst, uint64(len(value)))
	return append(dst, value...)
}
