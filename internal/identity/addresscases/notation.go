package addresscases

import (
	"slices"

	"github.com/sluicehq/sluice/internal/identity/edge"
)

// notations are the ways in which proxies write an address.
func notations() []Case {
	return table("notation", edge.Options{Trusted: Proxies()}, []row{
		{"IPv4", "10.0.0.1", "203.0.113.9", "203.0.113.9"},
		{"IPv4 and port", "10.0.0.1", "203.0.113.9:51234", "203.0.113.9"},
		{"IPv4 and port 0", "10.0.0.1", "203.0.113.9:0", "203.0.113.9"},
		{"IPv4 and the last port", "10.0.0.1", "203.0.113.9:65535", "203.0.113.9"},
		{"IPv6", "10.0.0.1", "2001:db8::9", "2001:db8::9"},
		{"IPv6 in brackets", "10.0.0.1", "[2001:db8::9]", "2001:db8::9"},
		{"IPv6 in brackets and port", "10.0.0.1", "[2001:db8::9]:443", "2001:db8::9"},
		{"IPv6 in capitals", "10.0.0.1", "2001:DB8::9", "2001:db8::9"},
		{"IPv6 written out", "10.0.0.1", "2001:0db8:0000:0000:0000:0000:0000:0009", "2001:db8::9"},
		{"IPv6 with a zone", "10.0.0.1", "fe80::9%eth0", "fe80::9"},
		{"IPv6 with a zone, in brackets", "10.0.0.1", "[fe80::9%25eth0]:80", "fe80::9"},
		{"mapped", "10.0.0.1", "::ffff:203.0.113.9", "203.0.113.9"},
		{"mapped, in brackets and port", "10.0.0.1", "[::ffff:203.0.113.9]:80", "203.0.113.9"},
		{"spaces around", "10.0.0.1", "  203.0.113.9  ", "203.0.113.9"},
		{"tabs around", "10.0.0.1", "\t203.0.113.9\t", "203.0.113.9"},
		{"no space behind the comma", "10.0.0.1", "203.0.113.9,10.0.0.2", "203.0.113.9"},
		{"space before the comma", "10.0.0.1", "203.0.113.9 ,10.0.0.2", "203.0.113.9"},
	})
}

// ipv6 is how addresses become what is counted.
func ipv6() []Case {
	width := func(bits int) edge.Options { return edge.Options{Trusted: Proxies(), IPv6Prefix: bits} }
	return slices.Concat(
		table("IPv6 by /64", width(64), []row{
			{"the address stays whole for rules", "2001:db8:a:b:c:d:e:f", "-", "2001:db8:a:b:c:d:e:f"},
			{"and is counted by its network", "2001:db8:a:b:c:d:e:f", "-", "2001:db8:a:b::/64"},
			{"through a proxy", "10.0.0.1", "2001:db8:a:b:c:d:e:f", "2001:db8:a:b::/64"},
		}),
		table("IPv6 by /56", width(56), []row{
			{"cut", "2001:db8:a:bcd:e::1", "-", "2001:db8:a:b00::"},
			{"neighbours are one client", "2001:db8:a:bff::1", "-", "2001:db8:a:b00::/64"},
			{"the next network is another", "2001:db8:a:c00::1", "-", "2001:db8:a:c00::/64"},
			{"IPv4 is not cut", "203.0.113.5", "-", "203.0.113.5"},
			{"mapped IPv4 is not cut", "::ffff:203.0.113.5", "-", "203.0.113.5"},
			{"through a proxy", "10.0.0.1", "2001:db8:a:bcd:e::1", "2001:db8:a:b00::"},
			{"trust looks at the whole address", "10.0.0.1", "203.0.113.9, 2001:db8:cd:ffff::1", "203.0.113.9"},
		}),
		table("IPv6 by /48", width(48), []row{
			{"cut", "2001:db8:a:b:c:d:e:f", "-", "2001:db8:a::"},
			{"neighbours are one client", "2001:db8:a:ffff::", "-", "2001:db8:a::/64"},
			{"translated IPv4 is not cut", "64:ff9b::8.8.8.8", "-", "8.8.8.8"},
		}),
		table("NAT64", edge.Options{Trusted: Proxies()}, []row{
			{"one client of a translator", "64:ff9b::203.0.113.5", "-", "203.0.113.5/32"},
			{"another one", "64:ff9b::203.0.113.6", "-", "203.0.113.6/32"},
			{"a private address does not get in", "64:ff9b::192.168.0.1", "-", "64:ff9b::c0a8:1"},
			{"nor loopback", "64:ff9b::127.0.0.1", "-", "64:ff9b::7f00:1"},
			{"nor a carrier's shared address", "64:ff9b::100.64.0.1", "-", "64:ff9b::6440:1"},
			{"nor link-local", "64:ff9b::169.254.169.254", "-", "64:ff9b::a9fe:a9fe"},
			{"nor unspecified", "64:ff9b::", "-", "64:ff9b::"},
			{"nor multicast", "64:ff9b::224.0.0.1", "-", "64:ff9b::e000:1"},
			{"just beside a carrier's", "64:ff9b::100.128.0.1", "-", "100.128.0.1"},
			{"a bit off the prefix", "64:ff9b:0:0:0:1:808:808", "-", "64:ff9b::1:808:808"},
			{"a local translator's prefix is another", "64:ff9b:1::8.8.8.8", "-", "64:ff9b:1::808:808"},
			{"through a proxy", "10.0.0.1", "64:ff9b::203.0.113.5", "203.0.113.5"},
		}),
	)
}

// depths are walks by number. Behind n proxies the n-th entry from the right was written by the outermost of them; one
// more to the left is the client's own.
func depths() []Case {
	by := func(n int) edge.Options { return edge.Options{Depth: n} }
	return slices.Concat(
		table("depth 1", by(1), []row{
			{"the client", "192.0.2.1", "203.0.113.9", "203.0.113.9"},
			{"one more is spoofed", "192.0.2.1", "1.1.1.1, 203.0.113.9", "203.0.113.9"},
			{"in lines", "192.0.2.1", "1.1.1.1\n203.0.113.9", "203.0.113.9"},
			{"no header: the proxy itself", "192.0.2.1", "-", "192.0.2.1"},
			{"unreadable", "192.0.2.1", "1.1.1.1, unknown", "192.0.2.1"},
			{"a private client", "192.0.2.1", "1.1.1.1, 10.0.0.9", "10.0.0.9"},
			{"IPv6", "192.0.2.1", "1.1.1.1, 2001:db8::9", "2001:db8::9"},
		}),
		table("depth 2", by(2), []row{
			{"the client", "192.0.2.1", "203.0.113.9, 192.0.2.2", "203.0.113.9"},
			{"one more is spoofed", "192.0.2.1", "1.1.1.1, 203.0.113.9, 192.0.2.2", "203.0.113.9"},
			{"two more are spoofed", "192.0.2.1", "1.1.1.1, 1.1.1.2, 203.0.113.9, 192.0.2.2", "203.0.113.9"},
			{"fewer entries: the leftmost", "192.0.2.1", "203.0.113.9", "203.0.113.9"},
			{"unreadable first", "192.0.2.1", "203.0.113.9, unknown", "192.0.2.1"},
			{"unreadable second", "192.0.2.1", "1.1.1.1, unknown, 192.0.2.2", "192.0.2.2"},
			{"in lines", "192.0.2.1", "1.1.1.1, 203.0.113.9\n192.0.2.2", "203.0.113.9"},
		}),
		table("depth 3", by(3), []row{
			{"the client", "192.0.2.1", "203.0.113.9, 192.0.2.3, 192.0.2.2", "203.0.113.9"},
			{"one more is spoofed", "192.0.2.1", "1.1.1.1, 203.0.113.9, 192.0.2.3, 192.0.2.2", "203.0.113.9"},
			{"fewer entries: the leftmost", "192.0.2.1", "203.0.113.9, 192.0.2.2", "203.0.113.9"},
		}),
		table("depth 1 and known proxies", edge.Options{Depth: 1, Trusted: Proxies()}, []row{
			{"through the proxy", "10.0.0.1", "1.1.1.1, 203.0.113.9", "203.0.113.9"},
			{"beside the proxy", "203.0.113.5", "1.1.1.1", "203.0.113.5"},
			{"the number decides, not the network", "10.0.0.1", "1.1.1.1, 10.0.0.2", "10.0.0.2"},
		}),
	)
}
