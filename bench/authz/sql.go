package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehq/sluice/bench/internal/bar"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/testpg"
)

// statements adds a row of a table that is in a namespace, $1, and called $2. Tables without namespaces pass over $1.
var statements = map[string]string{
	"namespaces": `INSERT INTO sluice.namespaces (name) SELECT $2::text WHERE $1::text IS NOT NULL`,
	"rules":      `INSERT INTO sluice.rules (namespace, name, body) VALUES ($1::text, $2::text, '{}')`,
	"overrides":  `INSERT INTO sluice.overrides (namespace, dimension, subject, rule, limits) VALUES ($1::text, 'user', $2::text, 'r', '[]')`,
	"changes": `WITH next AS (UPDATE sluice.revision SET value = value + 1 RETURNING value)
		INSERT INTO sluice.changes (revision, seq, actor, namespace, kind, name) SELECT value, 0, 'trial', $1::text, 'rule', $2::text FROM next`,
	"tiers":      `INSERT INTO sluice.tiers (name, body) SELECT $2::text, '{}' WHERE $1::text IS NOT NULL`,
	"subjects":   `INSERT INTO sluice.subjects (dimension, id) SELECT 'user', $2::text WHERE $1::text IS NOT NULL`,
	"blocks":     `INSERT INTO sluice.blocks (dimension, id) SELECT 'user', $2::text WHERE $1::text IS NOT NULL`,
	"exemptions": `INSERT INTO sluice.exemptions (dimension, id) SELECT 'user', $2::text WHERE $1::text IS NOT NULL`,
	"api_keys":   `INSERT INTO sluice.api_keys (id, owner, hash) SELECT $2::text, 'u', decode(repeat('00', 32), 'hex') WHERE $1::text IS NOT NULL`,
	"tokens":     `INSERT INTO sluice.tokens (id, name, grants, hash) SELECT $2::text, 't', '[]', decode(repeat('00', 32), 'hex') WHERE $1::text IS NOT NULL`,
}

// keys is the column that a row is found by.
var keys = map[string]string{
	"namespaces": "name", "rules": "name", "overrides": "subject", "changes": "name", "tiers": "name", "subjects": "id", "blocks": "id",
	"exemptions": "id", "api_keys": "id", "tokens": "id",
}

// sqlWall tries row-level security by SQL, as the application's user, and again with holes planted in it.
func sqlWall(ctx context.Context, b *bar.Bar, database *testpg.Database) {
	conn, err := pgx.Connect(ctx, database.URL())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(ctx)
	owner, err := pgx.Connect(ctx, database.As(testpg.Superuser)) // row-level security does not bind it
	if err != nil {
		b.Fatal(err)
	}
	defer owner.Close(ctx)
	w := &wall{bar: b, conn: conn, owner: owner, loud: true}
	wrong := 0
	for i := range rows {
		wrong += w.try(ctx, i)
	}
	b.Shown("statements as the application's user", float64(w.cases))
	b.Exactly("of these let through or held back wrongly", int64(wrong), 0)
	w.loud = false
	noticed := 0
	for i, row := range rows {
		w.mustExec(ctx, "ALTER TABLE sluice."+row.table+" DISABLE ROW LEVEL SECURITY")
		if w.try(ctx, i) > 0 {
			noticed++
		} else {
			b.Say("nobody would notice if sluice.%s had no row-level security", row.table)
		}
		w.mustExec(ctx, "ALTER TABLE sluice."+row.table+" ENABLE ROW LEVEL SECURITY")
	}
	b.Exactly("tables without row-level security that are not noticed", int64(len(rows)-noticed), 0)
}

type wall struct {
	bar         *bar.Bar
	conn, owner *pgx.Conn
	loud        bool
	cases       int
}

func (w *wall) mustExec(ctx context.Context, sql string, args ...any) {
	if _, err := w.owner.Exec(ctx, sql, args...); err != nil {
		w.bar.Fatal(fmt.Errorf("%s: %w", sql, err))
	}
}

// try does all that can be done with a row, as everybody, and returns how much came out otherwise than expected.
func (w *wall) try(ctx context.Context, i int) (wrong int) {
	row := rows[i]
	column := keys[row.table]
	at := "sluice." + row.table + " WHERE " + column + " = $2::text AND $1::text IS NOT NULL"
	change := "UPDATE sluice." + row.table + " SET " + column + " = " + column + " WHERE " + column + " = $2::text AND $1::text IS NOT NULL"
	for _, try := range []struct {
		want, sql string
		there     bool
	}{
		{row.see, "SELECT 1 FROM " + at, true}, {row.add, statements[row.table], false}, {row.change, change, true}, {row.drop, "DELETE FROM " + at, true},
	} {
		for caller := range callers {
			w.cases++
			name := fmt.Sprintf("row-%d", w.cases)
			if row.table == "namespaces" && try.there {
				name = row.of
			} else if try.there {
				w.mustExec(ctx, statements[row.table], row.of, name)
			}
			if got := w.does(ctx, caller, try.sql, row.of, name); got != try.want[caller] {
				wrong++
				if w.loud {
					w.bar.Say("%s of %q as %s: %c, want %c", try.sql, row.of, named(caller), got, try.want[caller])
				}
			}
		}
	}
	return wrong
}

// does runs a statement in a transaction with the caller's settings, which is then rolled back.
func (w *wall) does(ctx context.Context, caller int, sql, ns, name string) byte {
	tx, err := w.conn.Begin(ctx)
	if err != nil {
		w.bar.Fatal(err)
	}
	defer tx.Rollback(ctx) //nolint:errcheck // nothing is to be kept
	if caller > 0 {
		reads, operates, administers := settings(callers[caller])
		_, err = tx.Exec(ctx, "SELECT set_config('sluice.reads', $1, true), set_config('sluice.operates', $2, true), set_config('sluice.administers', $3, true)", reads, operates, administers)
		if err != nil {
			w.bar.Fatal(err)
		}
	}
	tag, err := tx.Exec(ctx, sql, ns, name)
	switch {
	case err != nil && isRefusal(err):
		return '-'
	case err != nil:
		w.bar.Say("%s: %v", sql, err)
		return '?'
	case tag.RowsAffected() == 0:
		return '-'
	}
	return 'o'
}

// settings are what a role is, in the database's words.
func settings(g registry.Grant) (reads, operates, administers string) {
	list := func(has bool) string {
		names := []string{}
		if has {
			names = append(names, g.Namespace)
		}
		text, _ := json.Marshal(names) // strings always can be
		return string(text)
	}
	return list(true), list(g.Role != registry.Viewer), list(g.Role == registry.Admin)
}

// isRefusal tells whether the database said that it may not be done.
func isRefusal(err error) bool {
	var state interface{ SQLState() string }
	return errors.As(err, &state) && state.SQLState() == "42501"
}
