package addresscases

import (
	"slices"

	"github.com/sluicehq/sluice/internal/identity/edge"
)

// direct are the cases of nothing in front.
func direct() []Case {
	return slices.Concat(
		table("nothing in front", edge.Options{}, []row{
			{"IPv4", "203.0.113.5", "-", "203.0.113.5"},
			{"IPv6", "2001:db8::5", "-", "2001:db8::5"},
			{"loopback", "127.0.0.1", "-", "127.0.0.1"},
			{"loopback, IPv6", "::1", "-", "::1"},
			{"mapped", "::ffff:203.0.113.5", "-", "203.0.113.5"},
			{"link-local with its zone", "fe80::1%eth0", "-", "fe80::1"},
			{"mapped with a zone", "::ffff:203.0.113.5%eth0", "-", "203.0.113.5"},
			{"a socket without an address", "", "-", "0.0.0.0"},
			{"a header", "203.0.113.5", "1.2.3.4", "203.0.113.5"},
			{"a header from loopback", "127.0.0.1", "1.2.3.4", "127.0.0.1"},
			{"a header from a private address", "10.0.0.1", "1.2.3.4", "10.0.0.1"},
			{"a socket without an address, with a header", "", "1.2.3.4", "0.0.0.0"},
			{"an empty header", "203.0.113.5", "", "203.0.113.5"},
		}),
		table("nothing in front, and the other header", edge.Options{}, []row{
			{"Forwarded is not read", "203.0.113.5", "-", "203.0.113.5"},
		}, "Forwarded", "for=1.2.3.4"),
		table("proxies known, peer is none", edge.Options{Trusted: Proxies()}, []row{
			{"IPv4", "203.0.113.5", "1.2.3.4", "203.0.113.5"},
			{"IPv6", "2001:db8:cc::5", "1.2.3.4", "2001:db8:cc::5"},
			{"one below the network", "9.255.255.255", "1.2.3.4", "9.255.255.255"},
			{"one above the network", "11.0.0.0", "1.2.3.4", "11.0.0.0"},
			{"loopback's neighbour", "127.0.0.2", "1.2.3.4", "127.0.0.2"},
			{"IPv6 loopback is another address", "::1", "1.2.3.4", "::1"},
			{"translated from a trusted one", "64:ff9b::10.0.0.1", "1.2.3.4", "64:ff9b::a00:1"},
			{"a socket without an address", "", "1.2.3.4", "0.0.0.0"},
			{"IPv4-compatible, long abolished", "::10.0.0.1", "1.2.3.4", "::a00:1"},
			{"6to4 of a trusted one", "2002:a00:1::1", "1.2.3.4", "2002:a00:1::1"},
		}),
		table("proxies known, peer is one", edge.Options{Trusted: Proxies()}, []row{
			{"first of the network", "10.0.0.0", "1.2.3.4", "1.2.3.4"},
			{"last of the network", "10.255.255.255", "1.2.3.4", "1.2.3.4"},
			{"a single address", "127.0.0.1", "1.2.3.4", "1.2.3.4"},
			{"mapped", "::ffff:10.1.2.3", "1.2.3.4", "1.2.3.4"},
			{"IPv6", "fd12::7", "1.2.3.4", "1.2.3.4"},
			{"IPv6 with a zone", "fd12::7%eth1", "1.2.3.4", "1.2.3.4"},
			{"a CDN's", "2001:db8:cd:ffff::1", "1.2.3.4", "1.2.3.4"},
			{"no header", "10.0.0.1", "-", "10.0.0.1"},
			{"an empty header", "10.0.0.1", "", "10.0.0.1"},
			{"spaces", "10.0.0.1", "   ", "10.0.0.1"},
		}),
		table("networks written oddly", edge.Options{Trusted: prefixes("::ffff:10.0.0.0/104", "192.0.2.77/24", "192.0.2.0/25", "192.0.2.128/26")}, []row{
			{"IPv4 within IPv6", "10.9.9.9", "1.2.3.4", "1.2.3.4"},
			{"host bits", "192.0.2.1", "1.2.3.4", "1.2.3.4"},
			{"behind an inner network", "192.0.2.250", "1.2.3.4", "1.2.3.4"},
			{"outside", "192.0.3.0", "1.2.3.4", "192.0.3.0"},
		}),
	)
}

// chains are walks through several hops.
func chains() []Case {
	o := edge.Options{Trusted: Proxies()}
	return slices.Concat(
		table("chain", o, []row{
			{"one proxy", "10.0.0.1", "203.0.113.9", "203.0.113.9"},
			{"two proxies", "10.0.0.1", "203.0.113.9, 10.0.0.2", "203.0.113.9"},
			{"three proxies", "10.0.0.1", "203.0.113.9, 198.51.100.7, 10.0.0.2", "203.0.113.9"},
			{"CDN and balancer", "10.0.0.1", "203.0.113.9, 198.51.100.7", "203.0.113.9"},
			{"CDN over IPv6", "10.0.0.1", "2001:db8::9, 2001:db8:cd::7", "2001:db8::9"},
			{"spoofed behind two", "10.0.0.1", "1.1.1.1, 203.0.113.9, 10.0.0.2", "203.0.113.9"},
			{"spoofed with a trusted address", "10.0.0.1", "10.0.0.5, 203.0.113.9", "203.0.113.9"},
			{"spoofed with many trusted ones", "10.0.0.1", chain("10.0.0.5", 40) + ", 203.0.113.9", "203.0.113.9"},
			{"somebody else's proxy is the client", "10.0.0.1", "192.168.1.5, 203.0.113.9, 10.0.0.2", "203.0.113.9"},
			{"all trusted: the leftmost", "10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"},
			{"a client inside", "10.0.0.1", "10.0.0.99", "10.0.0.99"},
			{"the CDN reached beside the balancer", "198.51.100.7", "203.0.113.9", "203.0.113.9"},
			{"mapped hop is trusted", "10.0.0.1", "203.0.113.9, ::ffff:10.0.0.2", "203.0.113.9"},
			{"translated hop is not", "10.0.0.1", "1.1.1.1, 64:ff9b::10.0.0.2", "64:ff9b::a00:2"},
			{"hop with a zone is trusted", "10.0.0.1", "203.0.113.9, fd00::2%eth0", "203.0.113.9"},
			{"hop with a port is trusted", "10.0.0.1", "203.0.113.9, 10.0.0.2:4711", "203.0.113.9"},
			{"the unspecified address is a client", "10.0.0.1", "1.1.1.1, 0.0.0.0", "0.0.0.0"},
			{"broadcast is a client", "10.0.0.1", "1.1.1.1, 255.255.255.255", "255.255.255.255"},
			{"the same client twice", "10.0.0.1", "203.0.113.9, 203.0.113.9", "203.0.113.9"},
		}),
		table("lines", o, []row{
			{"two", "10.0.0.1", "203.0.113.9\n10.0.0.2", "203.0.113.9"},
			{"two, spoofed in the first", "10.0.0.1", "1.1.1.1\n203.0.113.9", "203.0.113.9"},
			{"three", "10.0.0.1", "1.1.1.1\n203.0.113.9, 10.0.0.3\n10.0.0.2", "203.0.113.9"},
			{"garbage in the first", "10.0.0.1", "\"\n203.0.113.9", "203.0.113.9"},
			{"an empty first", "10.0.0.1", "\n203.0.113.9", "203.0.113.9"},
			{"an empty last", "10.0.0.1", "203.0.113.9\n", "10.0.0.1"},
			{"an empty one in between", "10.0.0.1", "203.0.113.9\n\n10.0.0.2", "10.0.0.2"},
			{"open brackets in the first", "10.0.0.1", "[\n203.0.113.9", "203.0.113.9"},
		}),
		table("length", o, []row{
			{"31 trusted and the client", "10.0.0.1", "203.0.113.9, " + chain("10.0.0.2", 31), "203.0.113.9"},
			{"32 trusted: the client is too far", "10.0.0.1", "203.0.113.9, " + chain("10.0.0.2", 32), "10.0.0.2"},
			{"the 32nd is the last that is seen", "10.0.0.1", "203.0.113.9, 10.0.0.3, " + chain("10.0.0.2", 31), "10.0.0.3"},
			{"a thousand trusted", "10.0.0.1", chain("10.0.0.2", 1000), "10.0.0.2"},
			{"a thousand others on the left", "10.0.0.1", chain("1.1.1.1", 1000) + ", 203.0.113.9", "203.0.113.9"},
			{"8 KB of commas on the left", "10.0.0.1", chain(",", 4000) + ", 203.0.113.9", "203.0.113.9"},
		}),
	)
}

// unreadable are entries that end the walk.
func unreadable() []Case {
	o := edge.Options{Trusted: Proxies()}
	at := func(entry string) string { return "1.1.1.1, " + entry + ", 10.0.0.2" }
	var rows []row
	for _, bad := range []string{
		"", "unknown", "-", "_hidden", "localhost", "example.com", "203.0.113", "203.0.113.9.1", "203.0.113.256", "203.0.113.09",
		"010.0.0.1", "0x0a.0.0.1", "3405803785", "203.0.113.9:", "203.0.113.9:99999", "203.0.113.9:http", "203.0.113.9:-1", "203.0.113.9/32",
		"[203.0.113.9]", "[203.0.113.9]:80", "[2001:db8::9", "2001:db8::9]", "[2001:db8::9]80", "[2001:db8::9]:", "[2001:db8::9]:x", "[]", "[", "]",
		"2001:db8::9::1", "2001:db8:::9", "2001:db8::g", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "203.0.113.9%eth0", "2001:db8::9%", ":80", ":",
		"\"203.0.113.9\"", "for=203.0.113.9", "203.0.113.9 10.0.0.3", "203.0.113.9;10.0.0.3", "203.0.113.9\x00", "２03.0.113.9", "203.0.113.9\u00a0",
	} {
		rows = append(rows, row{"the entry " + bad, "10.0.0.1", at(bad), "10.0.0.2"})
	}
	rows = append(rows,
		row{"first thing", "10.0.0.1", "203.0.113.9, unknown", "10.0.0.1"},
		row{"alone", "10.0.0.1", "unknown", "10.0.0.1"},
		row{"a trailing comma", "10.0.0.1", "203.0.113.9,", "10.0.0.1"},
		row{"only commas", "10.0.0.1", ",,,,", "10.0.0.1"},
		row{"left of the client", "10.0.0.1", "unknown, 203.0.113.9", "203.0.113.9"},
		row{"an entry of 8 KB", "10.0.0.1", "1.1.1.1, " + chain("x", 2700) + "x, 10.0.0.2", "10.0.0.2"},
	)
	return table("unreadable", o, rows)
}
