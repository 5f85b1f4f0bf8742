package postgres

import (
	"context"
	_ "embed"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehq/sluice/internal/registry"
)

var (
	//go:embed queries/exemptions.sql
	exemptionsSQL string
	//go:embed queries/exemption.sql
	exemptionSQL string
	//go:embed queries/put_exemption.sql
	putExemption string
	//go:embed queries/delete_exemption.sql
	deleteExemption string
)

func exemptionAt(who registry.Who) place[registry.Exemption] {
	return place[registry.Exemption]{
		kind: registry.KindExemption, name: nameOf(who), who: who, get: exemptionSQL, key: []any{who.Dimension, who.ID}, scan: scanExemption,
	}
}

func scanExemption(row pgx.CollectableRow) (registry.Entry[registry.Exemption], error) {
	var (
		e registry.Entry[registry.Exemption]
		x = &e.Body
	)
	err := row.Scan(&x.Who.Dimension, &x.Who.ID, &e.Version, &e.UpdatedAt, &e.UpdatedBy, &x.Reason, &x.Author)
	e.Name, e.UpdatedAt = nameOf(x.Who), e.UpdatedAt.UTC()
	return e, err
}

// Exemptions returns the exemptions, by dimension and id.
func (s *Scoped) Exemptions(ctx context.Context, p registry.Page) (registry.Listed[registry.Entry[registry.Exemption]], error) {
	after, err := parseCursor(p.After, "", "")
	if err != nil {
		return registry.Listed[registry.Entry[registry.Exemption]]{}, err
	}
	key := func(e registry.Entry[registry.Exemption]) []string {
		return []string{e.Body.Who.Dimension, e.Body.Who.ID}
	}
	listed, err := list(ctx, s, p, scanExemption, key, exemptionsSQL, after[0], after[1])
	return listed, fault("list exemptions", err)
}

// Exemption returns the exemption of a subject.
func (s *Scoped) Exemption(ctx context.Context, who registry.Who) (registry.Entry[registry.Exemption], error) {
	return exemptionAt(who).read(ctx, s)
}

// PutExemption exempts a subject from every rule. Without an author it is the actor.
func (s *Scoped) PutExemption(ctx context.Context, x registry.Exemption, e registry.Edit) (registry.Entry[registry.Exemption], error) {
	return exemptionAt(x.Who).put(ctx, s, e, putExemption, x.Who.Dimension, x.Who.ID, x.Reason, x.Author)
}

// DeleteExemption ends an exemption.
func (s *Scoped) DeleteExemption(ctx context.Context, who registry.Who, e registry.Edit) error {
	return exemptionAt(who).remove(ctx, s, e, deleteExemption)
}
