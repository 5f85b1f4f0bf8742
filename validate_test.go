package sluice

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestValidate_NamesTheFieldOfEveryFault(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 129)
	for _, c := range []struct {
		name   string
		change func(*Rule)
		want   string // fields, in order
	}{
		{"good", func(r *Rule) {}, ""},
		{"no name", func(r *Rule) { r.Name = "" }, "name"},
		{"long name", func(r *Rule) { r.Name = long }, "name"},
		{"name of 128 characters", func(r *Rule) { r.Name = strings.Repeat("é", 128) }, ""},
		{"control character", func(r *Rule) { r.Name = "a\nb" }, "name"},
		{"not UTF-8", func(r *Rule) { r.Name = "a\xff" }, "name"},
		{"long namespace and layer", func(r *Rule) { r.Namespace, r.Layer, r.Label = long, long, "l" }, "namespace layer"},
		{"layer that cannot be a label", func(r *Rule) { r.Layer = "naïve" }, "label"},
		{"labels", func(r *Rule) { r.Label = `a"b` }, "label"},
		{"backslash", func(r *Rule) { r.Label = `a\b` }, "label"},
		{"long label", func(r *Rule) { r.Label = strings.Repeat("l", 65) }, "label"},
		{"unknown action", func(r *Rule) { r.Action = 9 }, "action"},
		{"unknown policy", func(r *Rule) { r.OnStoreError = 9 }, "on_store_error"},
		{"no limits", func(r *Rule) { r.Limits = nil }, "limits"},
		{"shadow without limits", func(r *Rule) { r.Limits, r.Action = nil, Shadow }, "limits"},
		{"allow with limits", func(r *Rule) { r.Action = Allow }, "limits"},
		{"block with limits", func(r *Rule) { r.Action = Block }, "limits"},
		{"block without", func(r *Rule) { r.Action, r.Limits = Block, nil }, ""},
		{"same counter", func(r *Rule) { r.Limits = []Limit{PerMinute(1), PerHour(2), PerMinute(3)} }, "limits[2]"},
		{"other algorithm", func(r *Rule) { r.Limits = []Limit{PerMinute(1), Bucket(1, time.Minute, 2)} }, ""},
		{"limit 0", func(r *Rule) { r.Limits = []Limit{PerMinute(1), PerSecond(0)} }, "limits[1].limit"},
		{"window", func(r *Rule) { r.Limits = []Limit{PerMinute(1), Per(1, time.Microsecond)} }, "limits[1].window"},
		{"window and limit", func(r *Rule) { r.Limits = []Limit{{Limit: -1}} }, "limits[0].limit limits[0].window"},
		{"burst", func(r *Rule) { r.Limits[0].Burst = 3 }, "limits[0].burst"},
		{"bucket too fast", func(r *Rule) { r.Limits = []Limit{Bucket(6_000_000, time.Second, 100)} }, "limits[0]"},
		{"algorithm", func(r *Rule) { r.Limits[0].Algorithm = 77 }, "limits[0].algorithm"},
		{"throttle by window", func(r *Rule) { r.Action, r.MaxDelay = Throttle, time.Second }, "limits[0].algorithm"},
		{"throttle without delay", func(r *Rule) { r.Action, r.Limits = Throttle, []Limit{Bucket(1, time.Second, 2)} }, "max_delay"},
		{"throttle for too long", func(r *Rule) {
			r.Action, r.MaxDelay, r.Limits = Throttle, time.Minute+1, []Limit{Bucket(1, time.Second, 2)}
		}, "max_delay"},
		{"delay without throttle", func(r *Rule) { r.MaxDelay = time.Second }, "max_delay"},
		{"negative cost", func(r *Rule) { r.Cost = -1 }, "cost"},
		{"cost of a log", func(r *Rule) {
			r.Cost, r.Limits = 101, []Limit{{Algorithm: SlidingLog, Limit: 1000, Window: time.Hour}}
		}, "cost"},
		{"status", func(r *Rule) { r.Response.Status = 200 }, "response.status"},
		{"retry after", func(r *Rule) { r.Response.RetryAfter = -1 }, "response.retry_after"},
		{"route without routes", func(r *Rule) { r.Key = []Dimension{User, Route} }, "key[1]"},
		{"dimension twice", func(r *Rule) { r.Key = []Dimension{User, "x", User} }, "key[2]"},
		{"dimensions", func(r *Rule) { r.Key = []Dimension{"", "a+b", "global", "c\x00"} }, "label key[0] key[1] key[2] key[3] layer"},
		{"nine dimensions", func(r *Rule) { r.Key = []Dimension{"1", "2", "3", "4", "5", "6", "7", "8", "9"} }, "key"},
		{"empty values", func(r *Rule) {
			r.Match = Match{Tenants: []string{""}, Users: []string{"u", ""}, APIKeys: []string{""}, Tiers: []string{""}}
		}, "match.api_keys[0] match.tenants[0] match.tiers[0] match.users[1]"},
		{"methods", func(r *Rule) { r.Match.Methods = []string{"get", "", "A B", "É"} }, "match.methods[1] match.methods[2] match.methods[3]"},
		{"cidr", func(r *Rule) { r.Match.CIDRs = make([]netip.Prefix, 1) }, "match.cidrs[0]"},
		{"attributes", func(r *Rule) { r.Match.Attributes = map[string]string{"": "x", "plan": ""} }, "match.attributes match.attributes.plan"},
		{"everything at once", func(r *Rule) {
			*r = Rule{Action: Throttle, Limits: []Limit{PerSecond(0)}, Cost: -1, Match: Match{Routes: []string{"a"}}}
		}, "cost limits[0].algorithm limits[0].limit match.routes[0] max_delay name"},
	} {
		r := rule("r", Match{})
		c.change(&r)
		var fields []string
		for _, report := range Validate([]Rule{r}) {
			if report.Warning {
				t.Errorf("%s: warning %v", c.name, report)
			}
			fields = append(fields, report.Field)
		}
		want := strings.Fields(c.want)
		slices.Sort(fields)
		slices.Sort(want)
		if !slices.Equal(fields, want) {
			t.Errorf("%s: got faults of %q, want %q", c.name, fields, want)
		}
	}
}

func TestValidate_RefusesBadRoutePatterns(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{
		"", "a", "a/b", "**", "/a*", "/*/a", "/a/**", "/{x", "/x}", "/{x}y", "/a{x}", "/{}", "/{x y}", "/{x:[0-9]+}", "/{{x}}", "/{*}",
		"/a?b", "/a\n", "/\xff", "/" + strings.Repeat("a", 1024), strings.Repeat("/a", 65), "{x}", "*/a", "/{x*}",
	} {
		reports := Validate([]Rule{rule("r", Match{Routes: []string{"/good", pattern}})})
		if len(reports) != 1 || reports[0].Field != "match.routes[1]" {
			t.Errorf("pattern %q: got %v, want one fault of match.routes[1]", pattern, reports)
		}
	}
	for _, pattern := range []string{"*", "/", "/*", "/a/", "/a//b", "/{id}/*", "/a.b-c_d~!$&'()+,;=:@%20", "/é", strings.Repeat("/a", 64)} {
		if reports := Validate([]Rule{rule("r", Match{Routes: []string{pattern}})}); len(reports) != 0 {
			t.Errorf("pattern %q: got %v, want none", pattern, reports)
		}
	}
}

func TestValidate_WarnsWhenARequestCanNeverPass(t *testing.T) {
	t.Parallel()
	r := Rule{Name: "r", Cost: 5, Limits: []Limit{PerMinute(10), Bucket(100, time.Second, 4), PerHour(5)}}
	reports := Validate([]Rule{r})
	if len(reports) != 1 || !reports[0].Warning || reports[0].Field != "limits[1]" || !strings.Contains(reports[0].Error(), "never pass") {
		t.Errorf("got %v, want one warning about limits[1]", reports)
	}
}

func TestValidate_WarnsWhenABucketLosesToTheClock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit Limit
		cost  int64
		warn  bool
	}{
		{Bucket(5_000_000, time.Second, 1), 1, true},
		{Bucket(65_537, time.Second, 1), 1, true},
		{Bucket(5_000_000, time.Second, 5), 1, true},  // 0.8 µs to spare
		{Bucket(5_000_000, time.Second, 6), 1, false}, // 1 µs
		{Bucket(65_537, time.Second, 2), 1, false},
		{Bucket(65_537, time.Second, 2), 2, true},
		// Below 1,000 per second what a tick can take is below 0.1 %, so a burst of 1 is no mistake.
		{Bucket(999, time.Second, 1), 1, false},
		{Bucket(1, 24*time.Hour, 1), 1, false},
		{PerSecond(1_000_000), 1, false},
	} {
		reports := Validate([]Rule{{Name: "r", Cost: c.cost, Limits: []Limit{c.limit}}})
		if got := len(reports) == 1 && reports[0].Warning; got != c.warn || len(reports) > 1 {
			t.Errorf("%s, cost %d: got %v, want a warning: %t", c.limit, c.cost, reports, c.warn)
		}
	}
}

func TestValidate_WarnsAboutARuleThatNeverWins(t *testing.T) {
	t.Parallel()
	cidr := func(s string) []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix(s)} }
	routes := func(s ...string) Match { return Match{Routes: s} }
	for _, c := range []struct {
		name          string
		better, worse Match
		warn          bool
	}{
		{"everything", Match{}, Match{Users: []string{"u"}}, true},
		{"same", Match{Users: []string{"u"}}, Match{Users: []string{"u"}}, true},
		{"more values", Match{Users: []string{"v", "u"}}, Match{Users: []string{"u"}}, true},
		{"fewer values", Match{Users: []string{"u"}}, Match{Users: []string{"u", "v"}}, false},
		{"one field narrower", Match{Tiers: []string{"free"}}, Match{Users: []string{"u"}}, false},
		{"methods in another case", Match{Methods: []string{"get", "PUT"}}, Match{Methods: []string{"put"}}, true},
		{"attributes", Match{Attributes: map[string]string{"a": "1"}}, Match{Attributes: map[string]string{"a": "1", "b": "2"}}, true},
		{"other value", Match{Attributes: map[string]string{"a": "2"}}, Match{Attributes: map[string]string{"a": "1", "b": "2"}}, false},
		{"prefix around", Match{CIDRs: cidr("10.0.0.0/8")}, Match{CIDRs: cidr("10.1.0.0/16")}, true},
		{"prefix inside", Match{CIDRs: cidr("10.1.0.0/16")}, Match{CIDRs: cidr("10.0.0.0/8")}, false},
		{"prefix inside, from the same address", Match{CIDRs: cidr("10.0.0.0/16")}, Match{CIDRs: cidr("10.0.0.0/8")}, false},
		{"other family", Match{CIDRs: cidr("::/0")}, Match{CIDRs: cidr("10.0.0.0/8")}, false},
		{"equal route", routes("/a/{x}"), routes("/a/{id}"), true},
		{"wildcard", routes("/a/*"), routes("/a/", "/a/b", "/a/{x}/c", "/a/b/*"), true},
		{"not without its slash", routes("/a/*"), routes("/a"), false},
		{"parameter", routes("/{x}/b"), routes("/a/b"), true},
		{"parameter is not empty", routes("/a/{x}"), routes("/a/"), false},
		{"parameter is not empty, seen second", routes("/a/{x}"), routes("/a/b", "/a/"), false},
		{"parameter is one segment", routes("/a/{x}"), routes("/a/*"), false},
		{"any", routes("*"), routes("/*", "/a"), true},
		{"any is more", routes("/*"), routes("*"), false},
		{"one of two uncovered", routes("/a/*"), routes("/a/b", "/b"), false},
	} {
		better, worse := rule("better", c.better, User), rule("worse", c.worse, User)
		better.Priority = 1
		reports := Validate([]Rule{worse, better})
		got := len(reports) == 1 && reports[0].Warning && reports[0].Rule == "worse" && strings.Contains(reports[0].Error(), `rule "better"`)
		if got != c.warn || !c.warn && len(reports) > 0 {
			t.Errorf("%s: got %v, want a warning: %t", c.name, reports, c.warn)
		}
	}
}

func TestValidate_DoesNotWarnWhereTheOtherRuleCannotAlwaysApply(t *testing.T) {
	t.Parallel()
	in := func(r Rule, change func(*Rule)) Rule { change(&r); return r }
	worse := in(rule("worse", Match{Users: []string{"u"}}, User), func(r *Rule) { r.Layer = "l" })
	better := in(rule("better", Match{}, User), func(r *Rule) { r.Layer, r.Priority = "l", 1 })
	for name, c := range map[string]struct {
		better Rule
		warn   bool
	}{
		"as it is":        {better, true},
		"disabled":        {in(better, func(r *Rule) { r.Disabled = true }), false},
		"other layer":     {in(better, func(r *Rule) { r.Layer = "m" }), false},
		"other namespace": {in(better, func(r *Rule) { r.Namespace = "n" }), false},
		"faulty":          {in(better, func(r *Rule) { r.Cost = -1 }), false},
		"needs more":      {in(better, func(r *Rule) { r.Key = []Dimension{User, Tenant} }), false},
		"needs nothing":   {in(better, func(r *Rule) { r.Key = nil }), true},
	} {
		warned := slices.ContainsFunc(Validate([]Rule{c.better, worse}), func(r *RuleError) bool { return r.Warning })
		if warned != c.warn {
			t.Errorf("%s: warned %t, want %t", name, warned, c.warn)
		}
	}
}

// The search never asks covers about such rules; it must be right by itself all the same.
func TestCovers_NeedsTheDimensionsItCountsBy(t *testing.T) {
	t.Parallel()
	budget := coverBudget
	a, b := rule("a", Match{}, Tenant), rule("b", Match{Tenants: []string{"t"}})
	if open := rule("open", Match{}); covers(&a, &open, &budget) || !covers(&a, &b, &budget) {
		t.Error("a rule that counts by tenant covers exactly the rules whose requests all have one")
	}
}

func TestValidate_DoesNotTakeIPv4ForAllAddresses(t *testing.T) {
	t.Parallel()
	better, worse := rule("better", Match{CIDRs: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}, IP), rule("worse", Match{}, IP)
	if reports := Validate([]Rule{better, worse}); len(reports) != 0 {
		t.Errorf("got %v, want none: the second rule wins for IPv6", reports)
	}
}

// A warning that a rule never wins must be true: no request, however chosen, is won by such a rule. The reference decides.
func TestValidate_NeverWarnsFalselyOnRandomRules(t *testing.T) {
	t.Parallel()
	warned := 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 8))
		rules := randomRules(rng, 40)
		set, reports := Compile(rules)
		loser := map[string]bool{}
		for _, r := range reports {
			if r.Warning {
				loser[r.Namespace+"/"+r.Rule] = true
				warned++
			}
		}
		for r := range set.Rules() {
			for range 40 {
				req := aimedRequest(rng, r)
				for _, m := range naiveMatch(set.rules, &req) {
					if loser[m.Rule.Namespace+"/"+m.Rule.Name] {
						t.Fatalf("seed %d: %q was said never to win, and wins %+v", seed, m.Rule.Name, req)
					}
				}
			}
		}
	}
	if warned < 50 {
		t.Errorf("only %d warnings: the random rules do not cover one another", warned)
	}
}

// aimedRequest changes a request made for a rule here and there.
func aimedRequest(rng *rand.Rand, r *Rule) Request {
	req, other := *witness(r), randomRequest(rng)
	req.Namespace = r.Namespace
	for i, swap := range []func(){
		func() { req.Subject.Tenant = other.Subject.Tenant }, func() { req.Subject.User = other.Subject.User },
		func() { req.Subject.APIKey = other.Subject.APIKey }, func() { req.Subject.IP = other.Subject.IP },
		func() { req.Subject.Tier = other.Subject.Tier }, func() { req.Route = other.Route },
		func() { req.Method = other.Method }, func() { req.Attributes = other.Attributes },
	} {
		if i == 5 && len(r.Match.Routes) > 0 {
			req.Route = examplePath(oneOf(rng, r.Match.Routes...), oneOf(rng, "a", "b", "z"))
		}
		if rng.IntN(8) == 0 {
			swap()
		}
	}
	return req
}

func TestValidate_WitnessIsMatchedByItsOwnRule(t *testing.T) {
	t.Parallel()
	set, _ := Compile(randomRules(rand.New(rand.NewPCG(9, 10)), 500))
	for r := range set.Rules() {
		if req := witness(r); !r.Disabled && !naiveFits(r, req) {
			t.Errorf("witness of %+v is not matched: %+v", *r, *req)
		}
	}
}

// Rules that all overlap are the worst case of looking for rules that never win; the budget bounds it.
func TestValidate_StaysFastWhenAllRulesOverlap(t *testing.T) {
	t.Parallel()
	rules := make([]Rule, MaxRules)
	for i := range rules {
		rules[i] = rule(fmt.Sprint("r", i), Match{Users: []string{"all", fmt.Sprint("u", i)}, Tiers: []string{"a", fmt.Sprint("t", i)}}, User)
	}
	start := time.Now()
	if reports := Validate(rules); len(reports) != 0 {
		t.Errorf("got %d reports, want none: no rule covers another", len(reports))
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("validating %d rules took %s", len(rules), took)
	}
}
