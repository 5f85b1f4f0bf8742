package adminhttp

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/postgres"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

func tierEntries() entries[registry.Tier] {
	return entries[registry.Tier]{
		list: func(ctx context.Context, s *postgres.Scoped, _ *http.Request, p registry.Page) (registry.Listed[registry.Entry[registry.Tier]], error) {
			return s.Tiers(ctx, p)
		},
		get: func(ctx context.Context, s *postgres.Scoped, r *http.Request) (registry.Entry[registry.Tier], error) {
			return s.Tier(ctx, r.PathValue("name"))
		},
		read: readTier,
		put: func(ctx context.Context, s *postgres.Scoped, t registry.Tier, e registry.Edit) (registry.Entry[registry.Tier], error) {
			return s.PutTier(ctx, t, e)
		},
		remove: func(ctx context.Context, s *postgres.Scoped, r *http.Request, e registry.Edit) error {
			return s.DeleteTier(ctx, r.PathValue("name"), e)
		},
		versioned: true,
	}
}

func readTier(r *http.Request, body []byte) (registry.Tier, []fault) {
	var t registry.Tier
	if faults := decode(body, &t); faults != nil {
		return t, faults
	}
	name := r.PathValue("name")
	var faults []fault
	if t.Name != "" && t.Name != name {
		faults = append(faults, fault{"/name", fmt.Sprintf("is %q, but the tier was sent to %q: tiers are not renamed", t.Name, name)})
	}
	t.Name = name
	faults = append(faults, checkText("/name", t.Name, 1, 128)...)
	faults = append(faults, checkText("/display_name", t.DisplayName, 0, 255)...)
	faults = append(faults, checkText("/price", t.Price, 0, 255)...)
	seen := map[string]int{}
	for i, g := range t.Groups {
		at := fmt.Sprintf("/groups/%d", i)
		if j, twice := seen[g.Name]; twice {
			faults = append(faults, fault{at + "/name", fmt.Sprintf("is that of /groups/%d, too", j)})
		}
		seen[g.Name] = i
		faults = append(faults, checkGroup(at, t.Name, g)...)
	}
	return t, capFaults(faults)
}

// checkGroup checks a group of routes as the rule that nodes make of it.
func checkGroup(at, tier string, g registry.RouteGroup) []fault {
	faults := checkText(at+"/name", g.Name, 1, 64)
	rule := ruledoc.Rule{Name: "group", Match: ruledoc.Match{Tiers: []string{tier}, Routes: g.Routes}, Key: []string{"user"}, Limits: g.Limits}
	switch {
	case g.Unlimited && len(g.Limits) > 0:
		faults = append(faults, fault{at + "/limits", "there are limits in a group that is unlimited: take one of them away"})
	case g.Unlimited:
		rule.Action = "allow"
	case len(g.Limits) == 0:
		faults = append(faults, fault{at + "/limits", "there are none: write some, or unlimited"})
		return faults
	}
	_, found := ruledoc.FromDocument("", ruledoc.Document{Rules: []ruledoc.Rule{rule}})
	for _, f := range found {
		faults = append(faults, fault{at + groupPointer(f.Field), f.Err.Error()})
	}
	compiled, err := rule.ToRule()
	if err != nil {
		return faults // told above
	}
	_, reports := sluice.Compile([]sluice.Rule{compiled})
	for _, r := range reports {
		if !r.Warning {
			faults = append(faults, fault{at + groupPointer(r.Field), r.Err.Error()})
		}
	}
	return faults
}

// groupPointer is where a rule's field stands in a group.
func groupPointer(field string) string { return pointerOf(strings.TrimPrefix(field, "match.")) }
