package addresscases

import (
	"slices"

	"github.com/sluicehq/sluice/internal/identity/edge"
)

func byForwarded() edge.Options {
	return edge.Options{Trusted: Proxies(), Header: edge.Forwarded}
}

// forwardedChains are walks through the header of RFC 7239.
func forwardedChains() []Case {
	return slices.Concat(
		table("Forwarded", byForwarded(), []row{
			{"peer is no proxy", "203.0.113.5", "for=1.1.1.1", "203.0.113.5"},
			{"no header", "10.0.0.1", "-", "10.0.0.1"},
			{"one proxy", "10.0.0.1", "for=203.0.113.9", "203.0.113.9"},
			{"two proxies", "10.0.0.1", "for=203.0.113.9, for=10.0.0.2", "203.0.113.9"},
			{"spoofed", "10.0.0.1", "for=1.1.1.1, for=203.0.113.9", "203.0.113.9"},
			{"lines", "10.0.0.1", "for=1.1.1.1\nfor=203.0.113.9\nfor=10.0.0.2", "203.0.113.9"},
			{"a client's open quote", "10.0.0.1", `for=", for=203.0.113.9`, "203.0.113.9"},
			{"a client's open quote, and the proxy quotes", "10.0.0.1", `for=", for="[2001:db8::9]"`, "2001:db8::9"},
			{"a client's escaped quote", "10.0.0.1", `for="\", for="203.0.113.9"`, "203.0.113.9"},
			{"a client's backslash", "10.0.0.1", `\, for="203.0.113.9"`, "203.0.113.9"},
			{"a comma in quotes", "10.0.0.1", `for=1.1.1.1, by="a,b";for=203.0.113.9`, "203.0.113.9"},
			{"a quoted quote and comma", "10.0.0.1", `for=1.1.1.1, by="a\",b";for=203.0.113.9`, "203.0.113.9"},
			{"unknown ends", "10.0.0.1", "for=1.1.1.1, for=unknown, for=10.0.0.2", "10.0.0.2"},
			{"a hidden name ends", "10.0.0.1", "for=1.1.1.1, for=_mystery, for=10.0.0.2", "10.0.0.2"},
			{"an element without for ends", "10.0.0.1", "for=1.1.1.1, proto=https, for=10.0.0.2", "10.0.0.2"},
			{"an empty element ends", "10.0.0.1", "for=1.1.1.1, , for=10.0.0.2", "10.0.0.2"},
			{"32 trusted: the client is too far", "10.0.0.1", "for=203.0.113.9, " + chain("for=10.0.0.2", 32), "10.0.0.2"},
		}),
		table("Forwarded, and the other header", byForwarded(), []row{
			{"is not read", "10.0.0.1", "for=203.0.113.9", "203.0.113.9"},
			{"not even alone", "10.0.0.1", "-", "10.0.0.1"},
		}, "X-Forwarded-For", "1.1.1.1"),
		table("Forwarded by depth 2", edge.Options{Depth: 2, Header: edge.Forwarded}, []row{
			{"the client", "192.0.2.1", "for=203.0.113.9, for=192.0.2.2", "203.0.113.9"},
			{"one more is spoofed", "192.0.2.1", "for=1.1.1.1, for=203.0.113.9, for=192.0.2.2", "203.0.113.9"},
		}),
	)
}

// forwardedNotations are the ways to write an element.
func forwardedNotations() []Case {
	at := func(element string) string { return "for=1.1.1.1, " + element + ", for=10.0.0.2" }
	var rows []row
	for _, good := range [][2]string{
		{`for=203.0.113.9`, "203.0.113.9"},
		{`For=203.0.113.9`, "203.0.113.9"},
		{`FOR="203.0.113.9"`, "203.0.113.9"},
		{`for="203.0.113.9:51234"`, "203.0.113.9"},
		{`for="203.0.113.9:_port"`, "203.0.113.9"},
		{`for=203.0.113.9:51234`, "203.0.113.9"},
		{`for="[2001:db8::9]"`, "2001:db8::9"},
		{`for="[2001:db8::9]:443"`, "2001:db8::9"},
		{`for="[2001:db8::9]:_p"`, "2001:db8::9"},
		{`for="2001:db8::9"`, "2001:db8::9"},
		{`for=[2001:db8::9]`, "2001:db8::9"},
		{`for="[::ffff:203.0.113.9]"`, "203.0.113.9"},
		{`for=203.0.113.9;proto=https;by=10.0.0.1`, "203.0.113.9"},
		{`proto=https;for=203.0.113.9;host=example.com`, "203.0.113.9"},
		{`proto=https; for=203.0.113.9 ; host="a b"`, "203.0.113.9"},
		{`for="203\.0.113.9"`, "203.0.113.9"},
		{`secret="for=1.1.1.2";for=203.0.113.9`, "203.0.113.9"},
	} {
		rows = append(rows, row{"the element " + good[0], "10.0.0.1", at(good[0]), good[1]})
	}
	for _, bad := range []string{
		`for=`, `for`, `=203.0.113.9`, `for="203.0.113.9`, `for=203.0.113.9"`, `for="203.0.113.9"x`, `for='203.0.113.9'`, `for = 203.0.113.9`,
		`for=203.0.113.9;for=203.0.113.8`, `for=203.0.113.9;;by=x`, `for=203.0.113.9;by`, `;for=203.0.113.9`, `for=203.0.113.9;`, `203.0.113.9`,
		`for="203.0.113.9:_"`, `for=""`, `for="\"`, `for=203.0.113.9 by=x`, `f(r=1;for=203.0.113.9`, `for=2001:db8::g`, `xfor=203.0.113.9`,
	} {
		rows = append(rows, row{"the element " + bad, "10.0.0.1", at(bad), "10.0.0.2"})
	}
	return table("Forwarded, written", byForwarded(), rows)
}
