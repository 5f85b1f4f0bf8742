package postgres

import (
	"context"
	_ "embed"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehq/sluice/internal/registry"
)

var (
	//go:embed queries/tiers.sql
	tiersSQL string
	//go:embed queries/tier.sql
	tierSQL string
	//go:embed queries/put_tier.sql
	putTier string
	//go:embed queries/delete_tier.sql
	deleteTier string
)

func tierAt(name string) place[registry.Tier] {
	return place[registry.Tier]{kind: registry.KindTier, name: name, get: tierSQL, key: []any{name}, scan: scanTier}
}

// scanTier reads a row. A body that is no tier is shown as an empty one, as with rules.
func scanTier(row pgx.CollectableRow) (registry.Entry[registry.Tier], error) {
	var (
		t    registry.Entry[registry.Tier]
		text []byte
	)
	if err := row.Scan(&t.Name, &t.Version, &t.UpdatedAt, &t.UpdatedBy, &text); err != nil {
		return t, err
	}
	t.UpdatedAt = t.UpdatedAt.UTC()
	if err := decodeStrictly(text, &t.Body); err != nil {
		t.Body = registry.Tier{}
	}
	t.Body.Name = t.Name
	return t, nil
}

// Tiers returns the tiers, by name.
func (s *Scoped) Tiers(ctx context.Context, p registry.Page) (registry.Listed[registry.Entry[registry.Tier]], error) {
	after, err := parseCursor(p.After, "")
	if err != nil {
		return registry.Listed[registry.Entry[registry.Tier]]{}, err
	}
	listed, err := list(ctx, s, p, scanTier, byName, tiersSQL, after[0])
	return listed, fault("list tiers", err)
}

// byName is the key of entries that are listed by their name alone.
func byName[T any](e registry.Entry[T]) []string { return []string{e.Name} }

// Tier returns a tier.
func (s *Scoped) Tier(ctx context.Context, name string) (registry.Entry[registry.Tier], error) {
	return tierAt(name).read(ctx, s)
}

// PutTier writes a tier. It is not checked: validation is the caller's.
func (s *Scoped) PutTier(ctx context.Context, t registry.Tier, e registry.Edit) (registry.Entry[registry.Tier], error) {
	text, err := json.Marshal(t)
	if err != nil {
		return registry.Entry[registry.Tier]{}, err
	}
	return tierAt(t.Name).put(ctx, s, e, putTier, t.Name, string(text))
}

// DeleteTier deletes a tier. Those who are on it stay so, and no rule of it applies to them.
func (s *Scoped) DeleteTier(ctx context.Context, name string, e registry.Edit) error {
	return tierAt(name).remove(ctx, s, e, deleteTier)
}
