package sluice

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// compileRules compiles rules that must all be good.
func compileRules(t testing.TB, rules ...Rule) *RuleSet {
	t.Helper()
	set, reports := Compile(rules)
	for _, r := range reports {
		if !r.Warning {
			t.Fatalf("Compile: %v", r)
		}
	}
	return set
}

// rule returns a rule with one limit.
func rule(name string, m Match, key ...Dimension) Rule {
	return Rule{Name: name, Match: m, Key: key, Limits: []Limit{PerMinute(10)}}
}

func describe(matched []Matched) string {
	var b strings.Builder
	for _, m := range matched {
		fmt.Fprintf(&b, "%s/%s(%s) ", m.Rule.Layer, m.Rule.Name, m.Route)
	}
	return strings.TrimSpace(b.String())
}

func assertMatch(t *testing.T, set *RuleSet, req Request, want string) {
	t.Helper()
	got := set.Match(nil, &req)
	if describe(got) != want {
		t.Errorf("Match(%+v)\n got %q\nwant %q", req, describe(got), want)
	}
	if naive := naiveMatch(set.rules, &req); describe(naive) != want {
		t.Errorf("the reference disagrees: naiveMatch(%+v)\n got %q\nwant %q", req, describe(naive), want)
	}
}

func TestMatch_LowestPriorityWinsWithinALayer(t *testing.T) {
	t.Parallel()
	first, second := rule("b", Match{}, User), rule("a", Match{Users: []string{"u1"}}, User)
	first.Priority, second.Priority = 10, 20
	set := compileRules(t, second, first)
	assertMatch(t, set, Request{Subject: Subject{User: "u1"}}, "user/b()")
}

func TestMatch_ReturnsOneRuleOfEveryLayerThatMatches(t *testing.T) {
	t.Parallel()
	set := compileRules(t,
		rule("everyone", Match{}),
		rule("hourly", Match{}, User),
		rule("search", Match{Routes: []string{"/search"}}, Route, User),
		rule("upload", Match{Routes: []string{"/upload"}}, User, Route),
		Rule{Name: "own", Layer: "edge", Limits: []Limit{PerSecond(1)}, Match: Match{Methods: []string{"get"}}},
	)
	assertMatch(t, set, Request{Route: "/search?q=1", Method: "GET", Subject: Subject{User: "u"}},
		"edge/own() global/everyone() user/hourly() user+route/search(/search)")
	assertMatch(t, set, Request{Route: "/search"}, "global/everyone()")
}

func TestMatch_MoreSpecificRuleWinsAtEqualPriority(t *testing.T) {
	t.Parallel()
	prefix := netip.MustParsePrefix
	for _, c := range []struct {
		name          string
		winner, loser Match
	}{
		{"more fields", Match{Tiers: []string{"free"}, Users: []string{"u"}}, Match{Routes: []string{"/a/b"}}},
		{"each attribute is a field", Match{Attributes: map[string]string{"x": "1", "y": "2"}}, Match{Users: []string{"u"}}},
		{"endpoint over tier", Match{Routes: []string{"/a/b"}}, Match{Tiers: []string{"free"}}},
		{"tier over default", Match{Tiers: []string{"free"}}, Match{}},
		{"more literal segments", Match{Routes: []string{"/a/b"}}, Match{Routes: []string{"/a/{x}"}}},
		{"no wildcard", Match{Routes: []string{"/a/{x}"}}, Match{Routes: []string{"/a/*"}}},
		{"more parameters", Match{Routes: []string{"/a/{x}/*"}}, Match{Routes: []string{"/a/*"}}},
		{"the slash of /*", Match{Routes: []string{"/*"}}, Match{Routes: []string{"*"}}},
		{"broadest route decides", Match{Routes: []string{"/a/*"}}, Match{Routes: []string{"/a/b", "/*"}}},
		{"longer prefix", Match{CIDRs: []netip.Prefix{prefix("10.0.0.0/24")}}, Match{CIDRs: []netip.Prefix{prefix("10.0.0.0/8"), prefix("10.0.0.1/32")}}},
		{"fewer values", Match{Users: []string{"u"}}, Match{Users: []string{"u", "v"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			// The names would decide the other way.
			set := compileRules(t, rule("a-loser", c.loser), rule("z-winner", c.winner))
			req := Request{Route: "/a/b", Attributes: map[string]string{"x": "1", "y": "2"}}
			if c.name == "more parameters" {
				req.Route = "/a/b/c"
			}
			req.Subject = Subject{User: "u", Tier: "free", IP: netip.MustParseAddr("10.0.0.1")}
			won := set.Match(nil, &req)
			if len(won) != 1 || won[0].Rule.Name != "z-winner" {
				t.Errorf("Match: got %q, want z-winner", describe(won))
			}
			if naive := naiveMatch(set.rules, &req); describe(naive) != describe(won) {
				t.Errorf("the reference disagrees: %q", describe(naive))
			}
		})
	}
}

func TestMatch_NameDecidesBetweenEqualRules(t *testing.T) {
	t.Parallel()
	set := compileRules(t, rule("b", Match{Users: []string{"u"}}), rule("a", Match{Users: []string{"u"}}))
	assertMatch(t, set, Request{Subject: Subject{User: "u"}}, "global/a()")
}

func TestMatch_RuleNeedsEveryDimensionOfItsKey(t *testing.T) {
	t.Parallel()
	full := Request{
		Route: "/x", Method: "GET", Attributes: map[string]string{"region": "eu"},
		Subject: Subject{Tenant: "t", User: "u", APIKey: "k", IP: netip.MustParseAddr("::1")},
	}
	for _, c := range []struct {
		d    Dimension
		drop func(*Request)
	}{
		{Tenant, func(r *Request) { r.Subject.Tenant = "" }},
		{User, func(r *Request) { r.Subject.User = "" }},
		{APIKey, func(r *Request) { r.Subject.APIKey = "" }},
		{IP, func(r *Request) { r.Subject.IP = netip.Addr{} }},
		{Route, func(r *Request) { r.Route = "" }},
		{Method, func(r *Request) { r.Method = "" }},
		{"region", func(r *Request) { r.Attributes = nil }},
		{"region", func(r *Request) { r.Attributes = map[string]string{"other": "x"} }},
		{"region", func(r *Request) { r.Attributes = map[string]string{"region": ""} }},
	} {
		r := rule("r", Match{}, c.d)
		route := ""
		if c.d == Route {
			r.Match.Routes, route = []string{"*"}, "*"
		}
		set := compileRules(t, r, Rule{Name: "fallback", Layer: "~", Limits: []Limit{PerMinute(10)}})
		assertMatch(t, set, full, fmt.Sprintf("%s/r(%s) ~/fallback()", c.d, route))
		without := full
		c.drop(&without)
		assertMatch(t, set, without, "~/fallback()")
	}
}

func TestMatch_LooksAtEveryAttributeHoweverMany(t *testing.T) {
	t.Parallel()
	m, counted := Match{Attributes: map[string]string{}}, []Dimension{}
	for i := range 30 {
		m.Attributes[fmt.Sprint("a", i)] = "x"
		if i < MaxKeyDimensions {
			counted = append(counted, Dimension(fmt.Sprint("k", i)))
		}
	}
	all := Rule{Name: "all", Layer: "l", Match: m, Key: counted, Limits: []Limit{PerMinute(1)}}
	set := compileRules(t, all, Rule{Name: "rest", Layer: "l", Limits: []Limit{PerMinute(1)}})
	req := Request{Attributes: map[string]string{}}
	for name := range m.Attributes {
		req.Attributes[name] = "x"
	}
	for _, d := range counted {
		req.Attributes[string(d)] = "y"
	}
	assertMatch(t, set, req, "l/all()")
	for name := range req.Attributes {
		less := Request{Attributes: maps.Clone(req.Attributes)}
		delete(less.Attributes, name)
		assertMatch(t, set, less, "l/rest()")
	}
}

func TestMatch_DisabledRulesNeverMatchAndAllowAndBlockDo(t *testing.T) {
	t.Parallel()
	off := rule("off", Match{}, User)
	off.Disabled, off.Priority = true, 1
	set := compileRules(t, off,
		Rule{Name: "staff", Action: Allow, Match: Match{Users: []string{"root"}}, Key: []Dimension{User}},
		Rule{Name: "spam", Action: Block, Match: Match{Users: []string{"spammer"}}, Key: []Dimension{User}},
		rule("rest", Match{}, User))
	assertMatch(t, set, Request{Subject: Subject{User: "root"}}, "user/staff()")
	assertMatch(t, set, Request{Subject: Subject{User: "spammer"}}, "user/spam()")
	assertMatch(t, set, Request{Subject: Subject{User: "u"}}, "user/rest()")
}

func TestMatch_NamespacesAreSeparate(t *testing.T) {
	t.Parallel()
	other := rule("r", Match{})
	other.Namespace = "other"
	set := compileRules(t, rule("d", Match{}), other)
	assertMatch(t, set, Request{}, "global/d()")
	assertMatch(t, set, Request{Namespace: "default"}, "global/d()")
	assertMatch(t, set, Request{Namespace: "other"}, "global/r()")
	assertMatch(t, set, Request{Namespace: "none"}, "")
}

func TestMatch_RoutesMatchThePathAsGiven(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ pattern, yes, no string }{
		{"/", "/ /?a", "/a //"},
		{"/a", "/a /a?b=/c", "/a/ /A /a/b a /%61"},
		{"/a/", "/a/", "/a /a//"},
		{"/a/{x}", "/a/b /a/{x} /a/%2F", "/a/ /a /a/b/ /a/b/c"},
		{"/{x}/{y}", "/a/b", "//b /a/ /a"},
		{"/a/*", "/a/ /a/b /a/b/c /a// /a/../b", "/a /b /ab /b/../a/c"}, // dot segments are not resolved
		{"/a/{x}/*", "/a/b/ /a/b/c", "/a/b /a//c"},
		{"/*", "/ /a /a/b", "a *"},
		{"*", "/ a * /a/b", ""},
		{"/a//b", "/a//b", "/a/b"},
		{"/é/{x}", "/é/1", "/e/1"},
	} {
		set := compileRules(t, rule("r", Match{Routes: []string{c.pattern}}))
		for _, path := range strings.Fields(c.yes) {
			assertMatch(t, set, Request{Route: path}, "global/r("+c.pattern+")")
		}
		for _, path := range append(strings.Fields(c.no), "", "?a=/a/b") {
			assertMatch(t, set, Request{Route: path}, "")
		}
	}
}

func TestMatch_RouteIsTheMostSpecificPatternOfTheWinner(t *testing.T) {
	t.Parallel()
	mine := rule("mine", Match{Routes: []string{"*", "/*", "/api/*", "/{v}/b/c", "/api/{x}/c", "/api/{y}/c", "/api/b/{z}"}}, Route)
	mine.Priority = 1
	set := compileRules(t, mine, rule("other", Match{Routes: []string{"/api/b/c"}}, Route))
	for path, want := range map[string]string{
		"/api/b/c": "/api/b/{z}", "/api/q/c": "/api/{x}/c", "/v2/b/c": "/{v}/b/c", "/api/": "/api/*", "/q": "/*", "q": "*",
	} {
		assertMatch(t, set, Request{Route: path}, "route/mine("+want+")")
	}
}

func TestMatch_PathsOfAnyLengthAreMatchedByWildcards(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("/{p}", maxRouteSegments)
	set := compileRules(t, rule("deep", Match{Routes: []string{deep}}, Route), rule("rest", Match{Routes: []string{"/a/*"}}, Method, Route))
	assertMatch(t, set, Request{Method: "GET", Route: strings.Repeat("/a", maxRouteSegments)}, "route/deep("+deep+") route+method/rest(/a/*)")
	assertMatch(t, set, Request{Method: "GET", Route: strings.Repeat("/a", maxRouteSegments+1)}, "route+method/rest(/a/*)")
	assertMatch(t, set, Request{Method: "GET", Route: strings.Repeat("/a", 100_000)}, "route+method/rest(/a/*)")
}

// Every combination of literal and parameter over eight segments matches one path: the most the trie can branch.
func TestMatch_ManyPatternsForOnePathAreAllFound(t *testing.T) {
	t.Parallel()
	const depth = 8
	var rules []Rule
	all := rule("all", Match{}, Route)
	for i := range 1 << depth {
		pattern := ""
		for s := range depth {
			if i>>s&1 == 1 {
				pattern += "/{p}"
			} else {
				pattern += "/a"
			}
		}
		r := rule(fmt.Sprintf("r%03d", i), Match{Routes: []string{pattern}})
		r.Layer = r.Name
		rules = append(rules, r)
		all.Match.Routes = append(all.Match.Routes, pattern)
	}
	slices.Reverse(all.Match.Routes)
	set := compileRules(t, append(rules, all)...)
	req := Request{Route: strings.Repeat("/a", depth)}
	won := set.Match(nil, &req)
	if len(won) != 1<<depth+1 || describe(won) != describe(naiveMatch(set.rules, &req)) {
		t.Fatalf("Match found %d rules: %s", len(won), describe(won))
	}
	if last := won[len(won)-1]; last.Rule.Name != "all" || last.Route != strings.Repeat("/a", depth) {
		t.Errorf("rule %q: got route %q, want the one without parameters", last.Rule.Name, last.Route)
	}
}

func TestMatch_AddressesAreUnmappedAndZonesIgnored(t *testing.T) {
	t.Parallel()
	cidr := func(texts ...string) (m Match) {
		for _, s := range texts {
			m.CIDRs = append(m.CIDRs, netip.MustParsePrefix(s))
		}
		return m
	}
	set := compileRules(t,
		rule("ten", cidr("10.1.2.3/8"), IP),
		rule("ten-one", cidr("10.1.0.0/16", "::ffff:10.2.0.0/112"), IP),
		rule("link", cidr("fe80::/10"), IP),
		rule("six", cidr("::/0"), IP),
		rule("last", cidr("255.255.255.255/32"), IP))
	for addr, want := range map[string]string{
		"10.9.0.1": "ten", "10.1.0.1": "ten-one", "10.2.255.1": "ten-one", "::ffff:10.1.0.1": "ten-one", "fe80::1%eth0": "link",
		"2001:db8::1": "six", "9.255.255.255": "", "11.0.0.0": "", "255.255.255.255": "last", "255.255.255.254": "",
		"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff": "six", "::": "six", "0.0.0.0": "",
	} {
		if want != "" {
			want = "ip/" + want + "()"
		}
		assertMatch(t, set, Request{Subject: Subject{IP: netip.MustParseAddr(addr)}}, want)
	}
}

func TestMatch_AllocatesNothingWhenThereIsRoom(t *testing.T) {
	rules, requests := randomRules(rand.New(rand.NewPCG(1, 2)), 1000), make([]Request, 64)
	set, _ := Compile(rules)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range requests {
		requests[i] = randomRequest(rng)
	}
	dst, i := make([]Matched, 0, 64), 0
	if n := testing.AllocsPerRun(1000, func() {
		dst = set.Match(dst[:0], &requests[i%len(requests)])
		i++
	}); n != 0 {
		t.Errorf("Match allocates %v times", n)
	}
}

func TestMatch_AppendsAndTheZeroSetMatchesNothing(t *testing.T) {
	t.Parallel()
	set, have := compileRules(t, rule("r", Match{})), []Matched{{Route: "x"}}
	if got := set.Match(have, &Request{}); len(got) != 2 || got[0].Route != "x" {
		t.Errorf("Match: got %v, want one more element", got)
	}
	if got := new(RuleSet).Match(nil, &Request{}); got != nil {
		t.Errorf("zero set: got %v, want nil", got)
	}
}

// The index must answer what a scan of all rules answers, whatever the rules.
func TestMatch_EqualsANaiveScanOnRandomRules(t *testing.T) {
	t.Parallel()
	matched := 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 5))
		set, _ := Compile(randomRules(rng, []int{1, 10, 70, 600, 1500}[seed%5]))
		for range 150 {
			req := randomRequest(rng)
			got, want := describe(set.Match(nil, &req)), describe(naiveMatch(set.rules, &req))
			if got != want {
				t.Fatalf("seed %d, %d rules, Match(%+v)\n got %q\nwant %q", seed, set.Len(), req, got, want)
			}
			matched += strings.Count(got, " ")
		}
	}
	if matched < 5_000 {
		t.Errorf("only %d matches: the random requests miss the rules", matched)
	}
}

func TestMatch_FillsANamespaceToItsLastRule(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(6, 7))
	rules := make([]Rule, MaxRules)
	for i := range rules {
		rules[i] = rule(fmt.Sprint("r", i), Match{Users: []string{fmt.Sprint("u", i), "all"}}, User)
		rules[i].Layer = fmt.Sprint("layer", i%7)
	}
	set := compileRules(t, rules...)
	for range 50 {
		req := Request{Subject: Subject{User: fmt.Sprint("u", rng.IntN(MaxRules))}}
		if got, want := describe(set.Match(nil, &req)), describe(naiveMatch(set.rules, &req)); got != want || got == "" {
			t.Fatalf("Match(%+v)\n got %q\nwant %q", req, got, want)
		}
	}
	assertMatch(t, set, Request{Subject: Subject{User: "all"}}, describe(naiveMatch(set.rules, &Request{Subject: Subject{User: "all"}})))
}

func FuzzRoutePattern(f *testing.F) {
	for _, seed := range [][2]string{
		{"/a/{x}/*", "/a/b/c"}, {"/a/", "/a/"}, {"*", "x"}, {"/*", "/"}, {"/{a}/{b}", "//b"}, {"/a//{x}", "/a//b?c"}, {"/a*", "/a*"}, {"/{x", "/{x"}, {"/{}", "/x"},
	} {
		f.Add(seed[0], seed[1])
	}
	fixed := []string{"/*", "/a/*", "/{x}/b", "/a/{y}/c", "/a/b"}
	f.Fuzz(func(t *testing.T, pattern, path string) {
		if checkRoute(pattern) != nil {
			if reports := Validate([]Rule{rule("r", Match{Routes: []string{pattern}})}); len(reports) == 0 {
				t.Fatalf("Validate accepts pattern %q", pattern)
			}
			return
		}
		mine, others := rule("mine", Match{Routes: []string{pattern}}), rule("others", Match{Routes: append(fixed, pattern)})
		mine.Layer, others.Layer = "mine", "others"
		set := compileRules(t, mine, others)
		for _, p := range []string{path, examplePath(pattern, "x"), examplePath(pattern, "x") + "/"} {
			req := Request{Route: p}
			if got, want := describe(set.Match(nil, &req)), describe(naiveMatch(set.rules, &req)); got != want {
				t.Fatalf("pattern %q, path %q: got %q, want %q", pattern, p, got, want)
			}
			inside, _, _ := strings.Cut(p, "?")
			if got, want := routeMatches(pattern, inside), naivePathFits(pattern, inside); got != want {
				t.Fatalf("routeMatches(%q, %q): got %t, want %t", pattern, inside, got, want)
			}
			for _, other := range fixed {
				if routeCovers(other, pattern) && naivePathFits(pattern, inside) && !naivePathFits(other, inside) {
					t.Fatalf("routeCovers(%q, %q), but only the second matches %q", other, pattern, inside)
				}
				if routeCovers(pattern, other) && naivePathFits(other, inside) && !naivePathFits(pattern, inside) {
					t.Fatalf("routeCovers(%q, %q), but only the second matches %q", pattern, other, inside)
				}
			}
		}
	})
}

// FuzzCIDR reads five bytes for each IPv4 prefix and seventeen for each IPv6 one, then asks for every edge of every prefix.
func FuzzCIDR(f *testing.F) {
	f.Add([]byte{10, 0, 0, 0, 8, 10, 1, 0, 0, 16, 10, 1, 0, 0, 24}, false)
	f.Add([]byte{0, 0, 0, 0, 0, 255, 255, 255, 255, 32, 128, 0, 0, 0, 1}, false)
	f.Add([]byte(strings.Repeat("\x20\x01\x0d\xb8", 8)+"0@"), true)
	f.Fuzz(func(t *testing.T, data []byte, v6 bool) {
		size := 4
		if v6 {
			size = 16
		}
		var rules []Rule
		var asked []netip.Addr
		for ; len(data) > size && len(rules) < 40; data = data[size+1:] {
			addr, _ := netip.AddrFromSlice(data[:size])
			p := normalPrefix(netip.PrefixFrom(addr, int(data[size])%(8*size+1)))
			r := rule(fmt.Sprint("r", len(rules)/2), Match{CIDRs: []netip.Prefix{p}})
			if r.Layer = r.Name; len(rules)%2 == 1 {
				r.Name += "'"
			}
			rules = append(rules, r)
			last := lastOf(p)
			asked = append(asked, addr, p.Addr(), p.Addr().Prev(), last, last.Next())
		}
		if len(rules) == 0 {
			return
		}
		rules = append(rules, rule("counts", Match{}, IP), rule("all", Match{}))
		set := compileRules(t, rules...)
		for _, addr := range append(asked, netip.Addr{}, netip.IPv6Unspecified(), netip.IPv4Unspecified()) {
			req := Request{Subject: Subject{IP: addr}}
			if got, want := describe(set.Match(nil, &req)), describe(naiveMatch(set.rules, &req)); got != want {
				t.Fatalf("address %s of %v\n got %q\nwant %q", addr, rules, got, want)
			}
		}
	})
}
