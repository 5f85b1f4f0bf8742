package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/postgres"
)

// migrateFlags are those of sluice migrate.
type migrateFlags struct {
	database databaseFlags
	check    bool
}

func newMigrate(flags *config.Flags) *cobra.Command {
	migrate := migrateFlags{database: databaseFlags{as: "sluice_owner"}}
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Create the tables of the control plane in PostgreSQL, or bring them up to date",
		Long: `migrate connects to PostgreSQL as the role that owns sluice's tables, and creates or changes them. Nodes should connect as another role,
sluice_app, which can alter no table: then name the owner's URL here. Without one it is database.url of the configuration. Several may run
it at once; one works, the others wait.

A password stands in the file named by --url-file, in PGPASSWORD or in ~/.pgpass, and not on the command line.`,
		Example: `  sluice migrate --url postgres://sluice_owner@db.internal:5432/sluice?sslmode=verify-full
  sluice migrate --url-file /run/secrets/migrate-url
  sluice migrate --check --config /etc/sluice/sluice.toml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return migrate.run(cmd.Context(), flags, cmd.OutOrStdout())
		},
	}
	migrate.database.addTo(cmd, "the database, as the owner of the tables")
	cmd.Flags().BoolVar(&migrate.check, "check", false, "change nothing; exit with 1 when there is something to do")
	return cmd
}

// errNotMigrated ends a check. What is missing was printed already.
var errNotMigrated = errors.New("the database is not up to date: run sluice migrate")

func (f *migrateFlags) run(ctx context.Context, flags *config.Flags, out io.Writer) error {
	database, err := f.database.read(flags)
	if err != nil {
		return err
	}
	db, err := postgres.Open(ctx, postgres.Options{URL: database, MaxConns: 1})
	if err != nil {
		return err
	}
	defer db.Close()
	pending, err := db.Pending(ctx)
	if err != nil {
		return err
	}
	if f.check {
		if _, err := fmt.Fprintf(out, "%d migrations to apply\n", pending); err != nil || pending == 0 {
			return err
		}
		return errNotMigrated
	}
	if err := postgres.Migrate(ctx, database, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%d migrations applied; the database is up to date\n", pending)
	return err
}
