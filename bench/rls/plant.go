package main

import (
	"context"
	"math/rand/v2"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/envoyrls/pattern"
)

// plant is a mutation of our rules that the comparison must notice: a bar that cannot fail would prove nothing.
type plant struct {
	name string
	// apply mutates one rule and tells whether it is to be kept.
	apply func(r *sluice.Rule) bool
}

func plants() []plant {
	return []plant{
		{"limits one higher", func(r *sluice.Rule) bool {
			for i := range r.Limits {
				r.Limits[i].Limit++
			}
			return true
		}},
		{"shadow rules refuse", func(r *sluice.Rule) bool {
			if r.Action == sluice.Shadow {
				r.Action = sluice.Reject
			}
			return true
		}},
		{"nothing is replaced", func(r *sluice.Rule) bool { return r.Match.Attributes[pattern.Beside] == "" }},
		{"unlimited ones are left out", func(r *sluice.Rule) bool { return r.Label != pattern.Unlimited }},
		{"all values count together", func(r *sluice.Rule) bool {
			if r.Match.Attributes[pattern.Attribute] != "" {
				r.Key = nil
			}
			return true
		}},
	}
}

// plant mutates our rules in each way, and counts those that show.
func (r *run) plant(ctx context.Context) error {
	for _, p := range plants() {
		if err := r.sides.empty(); err != nil {
			return err
		}
		restore := r.sides.plant(func(rules []sluice.Rule) []sluice.Rule {
			var kept []sluice.Rule
			for i := range rules {
				if p.apply(&rules[i]) {
					kept = append(kept, rules[i])
				}
			}
			return kept
		})
		found, err := r.differing(ctx)
		restore()
		if err != nil {
			return err
		}
		r.b.Say("planted: %s: %d calls differ", p.name, found)
		r.plants++
		if found > 0 {
			r.noticed++
		}
	}
	return nil
}

// differing counts the calls that differ, of some for each configuration.
func (r *run) differing(ctx context.Context) (int, error) {
	found := 0
	for i := range r.configs {
		c := caller{rand.New(rand.NewPCG(r.seed, uint64(2000+i))), &r.configs[i].tree}
		for range 40 {
			p, err := r.ask(ctx, c.call())
			if err != nil {
				return found, err
			}
			if len(differences(p)) > 0 {
				found++
			}
		}
	}
	return found, nil
}
