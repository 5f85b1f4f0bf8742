package sluice

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestExplain_SaysTheSameAsMatchOnRandomRules(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 7))
	for range 200 {
		set, _ := Compile(randomRules(rng, 1+rng.IntN(40)))
		for range 20 {
			req := randomRequest(rng)
			applies := map[*Rule]bool{}
			for _, m := range set.Match(nil, &req) {
				applies[m.Rule] = true
			}
			for _, x := range set.explain(&req) {
				if x.Applies != applies[x.Rule] {
					t.Fatalf("request %+v, rule %+v: explained as applies=%t (%s), matched %t", req, x.Rule, x.Applies, x.Why, applies[x.Rule])
				}
				if x.Matches != naiveFits(x.Rule, &req) {
					t.Fatalf("request %+v, rule %+v: explained as matches=%t (%s)", req, x.Rule, x.Matches, x.Why)
				}
				if x.Why == "" {
					t.Fatalf("rule %q: no reason", x.Rule.Name)
				}
				delete(applies, x.Rule)
			}
			if len(applies) > 0 {
				t.Fatalf("rules that apply and were not explained: %v", applies)
			}
		}
	}
}

func TestExplain_NamesTheFieldThatDoesNotFit(t *testing.T) {
	t.Parallel()
	set := compileRules(t,
		rule("tier", Match{Tiers: []string{"free"}}),
		rule("route", Match{Routes: []string{"/api/*"}}),
		rule("attribute", Match{Attributes: map[string]string{"plan": "trial"}}),
		rule("user", Match{}, User),
	)
	req := Request{Route: "/home", Subject: Subject{Tier: "pro"}}
	want := map[string]string{
		"tier":      `tier is "pro", the rule wants "free"`,
		"route":     `route is "/home", the rule wants "/api/*"`,
		"attribute": `attribute "plan" is not told, the rule wants "trial"`,
		"user":      "the rule counts by user, which the request does not tell",
	}
	for _, x := range set.explain(&req) {
		if x.Matches || !strings.Contains(x.Why, want[x.Rule.Name]) {
			t.Errorf("rule %q: got %q, want %q", x.Rule.Name, x.Why, want[x.Rule.Name])
		}
	}
}
