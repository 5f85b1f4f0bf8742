package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehq/sluice/internal/testpg"
)

// tiers are those of the subjects, by their number.
var tiers = []string{"free", "pro", "team"}

// populate writes subjects and overrides, as an import would have: one subject in a hundred has an override.
func populate(ctx context.Context, place *testpg.Database, subjects int) error {
	conn, err := pgx.Connect(ctx, place.As(testpg.Superuser))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, step := range []struct {
		sql  string
		args []any
	}{
		{"SET synchronous_commit = off", nil},
		{`INSERT INTO sluice.tiers (name, body) SELECT name, jsonb_build_object('name', name) FROM unnest($1::text[]) AS t (name)`, []any{tiers}},
		{`INSERT INTO sluice.subjects (dimension, id, tier)
			SELECT 'user', 'user-' || lpad(n::text, 8, '0'), ($1::text[])[1 + n % 3] FROM generate_series(0, $2::int - 1) AS n`, []any{tiers, subjects}},
		{`INSERT INTO sluice.overrides (namespace, dimension, subject, rule, limits, reason)
			SELECT 'default', 'user', 'user-' || lpad(n::text, 8, '0'), 'users', '[{"limit": 700000, "window": "1h"}]', 'bar'
			FROM generate_series(0, $1::int - 1, 100) AS n`, []any{subjects}},
		// Otherwise the database does so by itself, while it is measured.
		{"VACUUM ANALYZE sluice.subjects, sluice.overrides, sluice.tiers, sluice.api_keys, sluice.blocks, sluice.exemptions", nil},
	} {
		if _, err := conn.Exec(ctx, step.sql, step.args...); err != nil {
			return fmt.Errorf("%.40s: %w", step.sql, err)
		}
	}
	return nil
}

// crowd draws subjects. Few come often, most come seldom: rank r as often as r^-1.1.
type crowd struct {
	zipf     *rand.Zipf
	subjects uint64
}

func newCrowd(subjects int, seed uint64) *crowd {
	return &crowd{rand.NewZipf(rand.New(rand.NewPCG(seed, seed)), 1.1, 1, uint64(subjects-1)), uint64(subjects)}
}

// next returns the number of a subject. Those who come often are spread over all numbers.
func (c *crowd) next() uint64 { return c.zipf.Uint64() * 6_700_417 % c.subjects }

func nameOf(n uint64) string { return fmt.Sprintf("user-%08d", n) }
