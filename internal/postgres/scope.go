package postgres

import (
	"context"
	_ "embed"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehq/sluice/internal/registry"
)

// Scoped is the database as one actor sees it. It is safe for concurrent use and costs nothing to make.
type Scoped struct {
	db    *DB
	actor registry.Actor
	grant grant
}

// As returns the database as the actor may use it.
func (db *DB) As(actor registry.Actor) *Scoped {
	return &Scoped{db: db, actor: actor, grant: grantOf(actor.Grants)}
}

// grant is what row-level security goes by: JSON lists of the namespaces that may be read, operated and administered.
type grant struct{ reads, operates, administers string }

// everything is what nodes read by. They write no entries, so they may not.
var everything = grant{reads: `["*"]`, operates: `[]`, administers: `[]`}

// settings are what a transaction begins with.
type settings interface{ queueIn(b *pgx.Batch) }

// grantOf makes the lists. A role may what those before it may; an unknown one may nothing.
func grantOf(grants []registry.Grant) grant {
	reads, operates, administers := []string{}, []string{}, []string{}
	for _, g := range grants {
		switch g.Role {
		case registry.Admin:
			administers = append(administers, g.Namespace)
			fallthrough
		case registry.Operator:
			operates = append(operates, g.Namespace)
			fallthrough
		case registry.Viewer:
			reads = append(reads, g.Namespace)
		}
	}
	list := func(names []string) string {
		text, _ := json.Marshal(names) // strings always can be
		return string(text)
	}
	return grant{list(reads), list(operates), list(administers)}
}

//go:embed queries/scope.sql
var scopeSQL string

// queueIn puts the settings before what follows in the batch. They last to the end of the transaction, and a batch outside of one is one.
func (g grant) queueIn(b *pgx.Batch) {
	b.Queue(scopeSQL, g.reads, g.operates, g.administers)
}

// query asks one thing, in one round trip, as the grant allows.
func query[T any](ctx context.Context, db *DB, g settings, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, db.timeout)
	defer cancel()
	var batch pgx.Batch
	g.queueIn(&batch)
	batch.Queue(sql, args...)
	results := db.pool.SendBatch(ctx, &batch)
	list, err := collectLast(results, batch.Len(), scan)
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return list, err
}

// collectLast passes over the answers to the settings.
func collectLast[T any](results pgx.BatchResults, statements int, scan pgx.RowToFunc[T]) ([]T, error) {
	for range statements - 1 {
		if _, err := results.Exec(); err != nil {
			return nil, err
		}
	}
	rows, err := results.Query()
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

// one is query for what is there once or not at all.
func one[T any](ctx context.Context, s *Scoped, scan pgx.RowToFunc[T], sql string, args ...any) (T, error) {
	list, err := query(ctx, s.db, s.grant, scan, sql, args...)
	if err != nil {
		return *new(T), err
	}
	if len(list) == 0 {
		return *new(T), registry.ErrNotFound
	}
	return list[0], nil
}
