package postgres

import (
	"context"
	_ "embed"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehq/sluice/internal/registry"
)

var (
	//go:embed queries/namespaces.sql
	namespacesSQL string
	//go:embed queries/create_namespace.sql
	createNamespace string
)

// Namespaces returns those that the actor may read, by name.
func (s *Scoped) Namespaces(ctx context.Context) ([]registry.Namespace, error) {
	list, err := query(ctx, s.db, s.grant, scanNamespace, namespacesSQL)
	return list, fault("list namespaces", err)
}

func scanNamespace(row pgx.CollectableRow) (n registry.Namespace, err error) {
	err = row.Scan(&n.Name, &n.CreatedAt, &n.CreatedBy)
	n.CreatedAt = n.CreatedAt.UTC()
	return n, err
}

// CreateNamespace adds a namespace without rules. It takes a grant for "*".
func (s *Scoped) CreateNamespace(ctx context.Context, name string, e registry.Edit) (registry.Namespace, error) {
	var n registry.Namespace
	_, err := s.write(ctx, "create namespace "+name, e, func(ctx context.Context, w *writer) (err error) {
		rows, _ := w.tx.Query(ctx, createNamespace, name, w.edit.Actor)
		if n, err = pgx.CollectExactlyOneRow(rows, scanNamespace); err != nil {
			return err
		}
		return w.log(registry.KindNamespace, name, name, registry.Who{}, nil, n)
	})
	return n, err
}
