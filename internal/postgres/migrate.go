package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// versionTable is where goose notes what was applied.
const versionTable = "sluice.schema_version"

// Migrate brings the tables of the database at the URL up to date, as the role of that URL, which becomes their owner. Several may run it at
// once: one works, the others wait. A nil log is told nothing.
func Migrate(ctx context.Context, url string, log *slog.Logger) error {
	return MigrateWith(ctx, Options{URL: url, Log: log})
}

// MigrateWith is Migrate with the TLS of the options.
func MigrateWith(ctx context.Context, opts Options) error {
	cfg, err := pgx.ParseConfig(opts.URL)
	if err != nil {
		return fmt.Errorf("database url: %w", hidePassword(err))
	}
	log := opts.Log
	opts.Log = nil // goose tells more than the driver would
	adjust(cfg, opts)
	db := stdlib.OpenDB(*cfg)
	defer db.Close()
	if err := createSchema(ctx, db); err != nil {
		return fault("create the schema", err)
	}
	provider, err := newProvider(db, log)
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return fault("migrate", err)
}

// createSchema makes room for goose's own table, which is there before the first migration.
func createSchema(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, "CREATE SCHEMA IF NOT EXISTS sluice")
	var answer *pgconn.PgError
	if errors.As(err, &answer) && (answer.Code == "23505" || answer.Code == "42P06") {
		return nil // another was quicker: IF NOT EXISTS looks, then creates
	}
	return err
}

func newProvider(db *sql.DB, log *slog.Logger) (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	// One second between tries: goose's own five would make every second node of a fleet that starts wait that long for nothing.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithTableName(versionTable), goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true), goose.WithSlog(log))
}

//go:embed queries/applied_migrations.sql
var appliedMigrations string

// Pending returns the number of migrations that this program knows and the database has not seen.
func (db *DB) Pending(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, db.timeout)
	defer cancel()
	files, err := fs.ReadDir(migrations, "migrations")
	if err != nil {
		return 0, err
	}
	rows, _ := db.pool.Query(ctx, appliedMigrations)
	applied, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	var answer *pgconn.PgError
	if errors.As(err, &answer) && (answer.Code == "42P01" || answer.Code == "3F000" || answer.Code == "42501") {
		return len(files), nil // nothing there, or nothing for us yet
	}
	if err != nil {
		return 0, fault("look for migrations", err)
	}
	seen := map[int64]bool{}
	for _, version := range applied {
		seen[version] = true
	}
	pending := 0
	for _, f := range files {
		if version, err := goose.NumericComponent(f.Name()); strings.HasSuffix(f.Name(), ".sql") && err == nil && !seen[version] {
			pending++
		}
	}
	return pending, nil
}
