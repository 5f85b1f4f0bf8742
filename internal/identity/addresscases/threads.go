package addresscases

import (
	"slices"

	"github.com/sluicehq/sluice/internal/identity/edge"
)

// threads are the cases that happened.
func threads() []Case {
	behind := edge.Options{Trusted: Proxies()}
	open := edge.Options{}
	return slices.Concat(
		table("talosctl-oidc#128, the header was believed from anyone", open, []row{
			{"a fresh address per request", "203.0.113.5", "1.1.1.1", "203.0.113.5"},
			{"another one", "203.0.113.5", "1.1.1.2", "203.0.113.5"},
			{"a victim's address", "203.0.113.5", "192.0.2.77", "203.0.113.5"},
		}),
		table("talosctl-oidc#128, once a proxy is configured", behind, []row{
			{"somebody beside the proxy", "203.0.113.5", "192.0.2.77", "203.0.113.5"},
			{"through the proxy", "10.0.0.1", "192.0.2.77, 203.0.113.5", "203.0.113.5"},
		}),
		table("alps#18, a victim locked out by his address on the left", behind, []row{
			{"the victim's address sent along", "10.0.0.1", "192.0.2.77, 203.0.113.9", "203.0.113.9"},
			{"the victim himself", "10.0.0.1", "192.0.2.77", "192.0.2.77"},
			{"sent in two lines", "10.0.0.1", "192.0.2.77\n203.0.113.9", "203.0.113.9"},
		}),
		table("everruns#2643, the leftmost entry was the key", behind, []row{
			{"rotated, first", "10.0.0.1", "1.2.3.1, 203.0.113.9", "203.0.113.9"},
			{"rotated, second", "10.0.0.1", "1.2.3.2, 203.0.113.9", "203.0.113.9"},
			{"rotated text that is no address", "10.0.0.1", "zzz, 203.0.113.9", "203.0.113.9"},
		}),
		table("coolify#7039, every proxy was trusted", behind, []row{
			{"the peer is nobody's proxy", "192.0.2.200", "127.0.0.1", "192.0.2.200"},
			{"it claims to be local", "192.0.2.200", "10.0.0.1", "192.0.2.200"},
			{"it claims so through the proxy", "10.0.0.1", "127.0.0.1, 192.0.2.200", "192.0.2.200"},
		}),
		rotation("zulip#21544, a new address of the same /64 each time"),
		rotation("sozu#1270, no idea of networks"),
		table("express-rate-limit#667, by bits and not by notation", behind, []row{
			{"mapped, dotted", "10.0.0.1", "::ffff:1.2.3.4", "1.2.3.4"},
			{"mapped, in hexadecimal", "10.0.0.1", "::ffff:102:304", "1.2.3.4"},
			{"mapped, written out", "10.0.0.1", "0:0:0:0:0:ffff:0102:0304", "1.2.3.4"},
			{"ordinary, ends in a dotted quad", "10.0.0.1", "2001:db8:1234:5678::1.2.3.4", "2001:db8:1234:5678::/64"},
			{"the same without it", "10.0.0.1", "2001:db8:1234:5678::102:304", "2001:db8:1234:5678::/64"},
			{"translated, dotted", "10.0.0.1", "64:ff9b::1.2.3.4", "1.2.3.4"},
			{"translated, in hexadecimal", "10.0.0.1", "64:ff9b::102:304", "1.2.3.4"},
		}),
		table("CVE-2026-30827, all IPv4 clients of a dual-stack socket in one counter", open, []row{
			{"one", "::ffff:203.0.113.5", "-", "203.0.113.5/32"},
			{"another", "::ffff:203.0.113.6", "-", "203.0.113.6/32"},
			{"far away", "::ffff:8.8.8.8", "-", "8.8.8.8/32"},
		}),
		table("golang/go#50580, the client had the proxy drop the field by Connection", behind, []row{
			{"nothing is left", "10.0.0.1", "-", "10.0.0.1"},
			{"the proxy's own stays", "10.0.0.1", "203.0.113.9", "203.0.113.9"},
		}, "Connection", "X-Forwarded-For"),
		table("golang/go#46313 and CVE-2021-33197, the same by an empty first line of Connection", behind, []row{
			{"nothing is left", "10.0.0.1", "-", "10.0.0.1"},
			{"the proxy's own stays", "10.0.0.1", "203.0.113.9", "203.0.113.9"},
		}, "Connection", "", "Connection", "X-Forwarded-For"),
		table("traefik#8319, other fields that tell an address", behind, []row{
			{"X-Real-Ip of a client is not read", "203.0.113.5", "-", "203.0.113.5"},
			{"not even through the proxy", "10.0.0.1", "203.0.113.9", "203.0.113.9"},
		}, "X-Real-Ip", "192.0.2.77", "True-Client-Ip", "192.0.2.77", "Forwarded", "for=192.0.2.77"),
		table("CVE-2026-35051, an alias with an underscore", behind, []row{
			{"from a client", "203.0.113.5", "-", "203.0.113.5"},
			{"through the proxy", "10.0.0.1", "203.0.113.9", "203.0.113.9"},
			{"alone through the proxy", "10.0.0.1", "-", "10.0.0.1"},
		}, "X_forwarded_for", "192.0.2.77"),
		table("GHSA-x677-9fxg-v5c5, an alias with a dot", behind, []row{
			{"from a client", "203.0.113.5", "-", "203.0.113.5"},
			{"through the proxy", "10.0.0.1", "203.0.113.9", "203.0.113.9"},
			{"alone through the proxy", "10.0.0.1", "-", "10.0.0.1"},
		}, "X.forwarded.for", "192.0.2.77"),
	)
}

// rotation walks through one /64.
func rotation(name string) []Case {
	rows := []row{
		{"the first", "2001:db8:1:2::1", "-", "2001:db8:1:2::/64"},
		{"the next", "2001:db8:1:2::2", "-", "2001:db8:1:2::/64"},
		{"a random one", "2001:db8:1:2:8c1f:ee:91:a7", "-", "2001:db8:1:2::/64"},
		{"the last", "2001:db8:1:2:ffff:ffff:ffff:ffff", "-", "2001:db8:1:2::/64"},
		{"the neighbour's", "2001:db8:1:3::1", "-", "2001:db8:1:3::/64"},
		{"through a proxy", "10.0.0.1", "2001:db8:1:2::9", "2001:db8:1:2::/64"},
	}
	return table(name, edge.Options{Trusted: Proxies()}, rows)
}
