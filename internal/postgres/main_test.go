package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehq/sluice/internal/postgres"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
	"github.com/sluicehq/sluice/internal/testpg"
)

// root may everything everywhere.
var root = registry.Actor{Name: "root", Grants: []registry.Grant{{Namespace: "*", Role: registry.Admin}}}

// by is an edit whose circumstances do not matter.
var by = registry.Edit{Actor: "ann", Reason: "a test", RequestID: "r-1"}

// open returns a database of the test's own, and the place it is in.
func open(t *testing.T) (*postgres.DB, *testpg.Database) {
	t.Helper()
	d := testpg.New(t)
	return connect(t, d.URL()), d
}

func connect(t *testing.T, url string) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), postgres.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// session is a plain connection as a role.
func session(t *testing.T, d *testpg.Database, role string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), d.As(role))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// must returns the value of a call that has to work.
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
}

// rule is a rule with a limit of n a minute.
func rule(name string, n int64) ruledoc.Rule {
	return ruledoc.Rule{Name: name, Key: []string{"user"}, Limits: []ruledoc.Limit{{Limit: n, Window: ruledoc.Duration(time.Minute)}}}
}
