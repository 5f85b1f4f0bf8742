package sluice

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCompile_FillsInTheDefaults(t *testing.T) {
	t.Parallel()
	set := compileRules(t, Rule{
		Name: "r", Key: []Dimension{"zone", Route, User, "app"}, Limits: []Limit{PerMinute(1)},
		Match: Match{Routes: []string{"/a"}, Methods: []string{"get"}, CIDRs: []netip.Prefix{netip.MustParsePrefix("::ffff:10.1.2.3/104")}},
	}, Rule{Name: "g", Action: Block})
	rules := slices.Collect(set.Rules())
	want := Rule{
		Namespace: "default", Name: "r", Priority: 100, Key: []Dimension{"zone", Route, User, "app"}, Limits: []Limit{PerMinute(1)},
		Layer: "user+route+app+zone", Label: "user+route+app+zone", Cost: 1, Response: Response{Status: 429},
		Match: Match{Routes: []string{"/a"}, Methods: []string{"GET"}, CIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
	}
	if len(rules) != 2 || !reflect.DeepEqual(*rules[0], want) {
		t.Errorf("Compile:\n got %+v\nwant %+v", rules[0], want)
	}
	if g := rules[1]; g.Layer != "global" || g.Label != "global" {
		t.Errorf("rule without key: got layer %q and label %q, want global", g.Layer, g.Label)
	}
}

func TestCompile_KeepsWhatTheRuleSays(t *testing.T) {
	t.Parallel()
	r := Rule{
		Namespace: "n", Name: "r", Priority: -5, Layer: "edge", Label: "Search API", Cost: 7, Limits: []Limit{Bucket(10, time.Second, 20)},
		Action: Throttle, MaxDelay: time.Second, Response: Response{Status: 503, Message: "m", RetryAfter: time.Minute},
	}
	for got := range compileRules(t, r).Rules() {
		if !reflect.DeepEqual(*got, r) {
			t.Errorf("Compile:\n got %+v\nwant %+v", *got, r)
		}
	}
}

func TestCompile_SharesNoMemoryWithTheCaller(t *testing.T) {
	t.Parallel()
	rules := []Rule{rule("r", Match{
		Tenants: []string{"t"}, Users: []string{"u"}, APIKeys: []string{"k"}, Tiers: []string{"free"}, Routes: []string{"/a"}, Methods: []string{"get"},
		CIDRs: []netip.Prefix{netip.MustParsePrefix("10.1.1.1/8")}, Attributes: map[string]string{"a": "b"},
	}, User)}
	before := fmt.Sprintf("%+v", rules)
	set := compileRules(t, rules...)
	if after := fmt.Sprintf("%+v", rules); after != before {
		t.Errorf("Compile changed its argument:\n got %s\nwant %s", after, before)
	}
	for r := range set.Rules() {
		compiled := fmt.Sprintf("%+v", *r)
		m := &rules[0].Match
		for _, list := range [][]string{m.Tenants, m.Users, m.APIKeys, m.Tiers, m.Routes, m.Methods} {
			list[0] = "changed"
		}
		m.CIDRs[0], m.Attributes["a"], rules[0].Key[0], rules[0].Limits[0] = netip.Prefix{}, "changed", Tenant, Limit{}
		if now := fmt.Sprintf("%+v", *r); now != compiled {
			t.Errorf("the set changed with the caller's rules:\n got %s\nwant %s", now, compiled)
		}
	}
}

func TestCompile_QuarantinesABadRuleAlone(t *testing.T) {
	t.Parallel()
	set, reports := Compile([]Rule{rule("good", Match{}), rule("bad", Match{Routes: []string{"x"}}), rule("fine", Match{}, User)})
	if len(reports) != 1 || reports[0].Rule != "bad" || reports[0].Index != 1 || reports[0].Warning {
		t.Errorf("reports: got %v, want one fault of rule bad", reports)
	}
	assertMatch(t, set, Request{Subject: Subject{User: "u"}}, "global/good() user/fine()")
}

func TestCompile_KeepsTheFirstRuleOfAName(t *testing.T) {
	t.Parallel()
	elsewhere := rule("r", Match{}, User)
	elsewhere.Namespace = "other"
	set, reports := Compile([]Rule{rule("r", Match{}, User), rule("r", Match{}), elsewhere, rule("r", Match{}, Tenant)})
	if set.Len() != 2 || len(reports) != 2 || reports[0].Index != 1 || reports[1].Index != 3 || reports[0].Field != "name" {
		t.Errorf("got %d rules and %v, want 2 rules and faults of the second and fourth", set.Len(), reports)
	}
	assertMatch(t, set, Request{Subject: Subject{User: "u"}}, "user/r()")
}

func TestCompile_QuarantinesRulesBeyondTheMost(t *testing.T) {
	t.Parallel()
	var rules []Rule
	for i := range MaxRules + 3 {
		rules = append(rules, rule(fmt.Sprint("r", i), Match{Users: []string{fmt.Sprint("u", i)}}, User))
	}
	rules[5].Name = "" // faulty rules do not count
	set, reports := Compile(rules)
	if set.Len() != MaxRules || len(reports) != 3 {
		t.Fatalf("got %d rules and %d reports, want %d and 3", set.Len(), len(reports), MaxRules)
	}
	if last := reports[2]; last.Index != MaxRules+2 || !strings.Contains(last.Error(), "already has 10000 rules") {
		t.Errorf("last report: got %v", last)
	}
}

func TestCompile_ReportsWarningsAndKeepsTheRule(t *testing.T) {
	t.Parallel()
	costly := rule("costly", Match{})
	costly.Cost = 11
	set, reports := Compile([]Rule{costly})
	if set.Len() != 1 || len(reports) != 1 || !reports[0].Warning {
		t.Errorf("got %d rules and %v, want 1 rule and a warning", set.Len(), reports)
	}
}

func TestCompile_OfNothingIsAnEmptySet(t *testing.T) {
	t.Parallel()
	set, reports := Compile(nil)
	if set.Len() != 0 || len(reports) != 0 || len(set.Match(nil, &Request{})) != 0 {
		t.Errorf("got %d rules, %v", set.Len(), reports)
	}
}

func TestRuleSet_WithRevisionLeavesTheSetAsItIs(t *testing.T) {
	t.Parallel()
	set := compileRules(t, rule("r", Match{}))
	next := set.WithRevision(42)
	if set.Revision() != 0 || next.Revision() != 42 || next.Len() != 1 {
		t.Errorf("got revisions %d and %d with %d rules, want 0, 42 and 1", set.Revision(), next.Revision(), next.Len())
	}
	assertMatch(t, next, Request{}, "global/r()")
}

// About 0.1 s for a full namespace, so that a change of rules does not disturb a node that serves.
func BenchmarkCompile_FullNamespace(b *testing.B) {
	rules := make([]Rule, MaxRules)
	for i := range rules {
		rules[i] = rule(fmt.Sprint("r", i), Match{
			Users: []string{fmt.Sprint("u", i)}, Routes: []string{fmt.Sprintf("/api/{v}/svc%d/*", i)},
			CIDRs: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i)}), 24)},
		}, User)
	}
	b.ReportAllocs()
	for b.Loop() {
		Compile(rules)
	}
}
