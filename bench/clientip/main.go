// Command clientip is make bar-clientip: it holds the client's address to its promises. Every case of the table comes out
// as written, nothing that a client prepends changes the result, and resolvers with planted faults are found out.
package main

import (
	"math/rand/v2"
	"net/http"
	"net/netip"
	"time"

	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/internal/identity/addresscases"
	"github.com/sluicehq/sluice/internal/identity/edge"
)

const (
	trials = 300_000
	timed  = 200_000
)

// resolver is what is tried: our own, or one with a fault.
type resolver func(peer netip.Addr, h http.Header) netip.Addr

func main() {
	b := bar.New("bar-clientip")
	addresses, fields, failed := 0, 0, 0
	for _, c := range addresscases.All() {
		addresses++
		if err := c.Check(ours(b, c.Options).Client); err != nil {
			failed++
			b.Say("%v", err)
		}
	}
	for _, c := range addresscases.Fields() {
		fields++
		if err := c.Check(ours(b, c.Options).StripFrom); err != nil {
			failed++
			b.Say("%v", err)
		}
	}
	b.AtLeast("address cases", float64(addresses), 200, 200)
	b.Shown("cases of header fields", float64(fields))
	b.Exactly("cases that came out otherwise", int64(failed), 0)

	b.Say("prepending to %d headers", trials)
	b.AtLeast("headers prepended to", trials, 100_000, 100_000)
	changed, wrong := violations(b, trials, func(o edge.Options) resolver { return ours(b, o).Client })
	b.Exactly("results that changed", changed, 0)
	b.Exactly("results that were not the client", wrong, 0)
	for _, f := range faults {
		found, _ := violations(b, trials/10, func(o edge.Options) resolver { return f.make(b, o) })
		b.AtLeast("changed with a fault planted, "+f.name, float64(found), 1, 1)
	}
	measure(b)
	b.End()
}

func ours(b *bar.Bar, o edge.Options) *edge.Edge {
	e, err := edge.New(o)
	if err != nil {
		b.Fatal(err)
	}
	return e
}

// violations counts the headers for which prepending changes the result, and those for which it is not the client even
// without.
func violations(b *bar.Bar, n int, build func(edge.Options) resolver) (changed, wrong int64) {
	rng := rand.New(rand.NewPCG(2026, 11)) // fixed, so that every resolver meets the same headers
	made := map[shape]resolver{}
	for range n {
		t := addresscases.NewTrial(rng)
		s := shape{t.Options.Depth, t.Options.Header}
		if made[s] == nil {
			made[s] = build(t.Options)
		}
		before, after := made[s](t.Peer, t.Before), made[s](t.Peer, t.After)
		if before != t.Client {
			wrong++
		}
		if before != after {
			if changed++; changed == 1 {
				b.Say("peer %s, depth %d, %q: %s; with more in front, %q: %s", t.Peer, t.Options.Depth, t.Before, before, t.After, after)
			}
		}
	}
	return changed, wrong
}

// shape tells the options of trials apart.
type shape struct {
	depth  int
	header string
}

// measure shows what the address costs a request.
func measure(b *bar.Bar) {
	e := ours(b, edge.Options{Trusted: addresscases.Proxies()})
	client, proxy := netip.MustParseAddr("203.0.113.5"), netip.MustParseAddr("10.0.0.1")
	h := http.Header{"X-Forwarded-For": {"1.1.1.1, 203.0.113.9, 198.51.100.7"}}
	for _, m := range []struct {
		what string
		peer netip.Addr
	}{{"ns without a proxy", client}, {"ns behind two proxies", proxy}} {
		start := time.Now()
		for range timed {
			e.Client(m.peer, h)
		}
		b.Shown(m.what, float64(time.Since(start).Nanoseconds())/timed)
	}
}
