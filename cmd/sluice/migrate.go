package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/postgres"
)

// migrateFlags are those of sluice migrate.
type migrateFlags struct {
	url, urlFile string
	check        bool
}

func newMigrate(flags *config.Flags) *cobra.Command {
	var migrate migrateFlags
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
	cmd.Flags().StringVar(&migrate.url, "url", "", "the database, as the owner of the tables: postgres://sluice_owner@host:5432/sluice")
	cmd.Flags().StringVar(&migrate.urlFile, "url-file", "", "a file that holds the URL")
	cmd.Flags().BoolVar(&migrate.check, "check", false, "change nothing; exit with 1 when there is something to do")
	cmd.MarkFlagsMutuallyExclusive("url", "url-file")
	return cmd
}

// errNotMigrated ends a check. What is missing was printed already.
var errNotMigrated = errors.New("the database is not up to date: run sluice migrate")

func (f *migrateFlags) run(ctx context.Context, flags *config.Flags, out io.Writer) error {
	database, err := f.database(flags)
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

// database returns the URL.
func (f *migrateFlags) database(flags *config.Flags) (string, error) {
	if f.urlFile != "" {
		text, err := os.ReadFile(filepath.Clean(f.urlFile))
		return strings.TrimSpace(string(text)), err
	}
	if f.url != "" {
		return f.url, checkNoPassword(f.url)
	}
	loaded, err := config.Load(flags.Options())
	if err != nil {
		return "", err
	}
	if loaded.Config.Database.URL == "" {
		return "", usageError{errors.New("name the database by --url or --url-file, such as postgres://sluice_owner@host:5432/sluice")}
	}
	return signedBy(loaded.Config.Database.URL, loaded.Config.Database.CAFile)
}

// checkNoPassword refuses what everybody on the machine could read in its list of processes.
func checkNoPassword(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return usageError{errors.New("--url cannot be read: want postgres://sluice_owner@host:5432/sluice")}
	}
	if _, secret := u.User.Password(); secret || u.Query().Has("password") {
		return usageError{errors.New("--url holds a password, which does not belong on the command line: use --url-file, PGPASSWORD or ~/.pgpass")}
	}
	return nil
}

// signedBy adds what database.ca_file says to the URL.
func signedBy(text, caFile string) (string, error) {
	if caFile == "" {
		return text, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", errors.New("database.url cannot be read: want postgres://user:password@host:5432/database")
	}
	how := u.Query()
	how.Set("sslmode", "verify-full")
	how.Set("sslrootcert", caFile)
	u.RawQuery = how.Encode()
	return u.String(), nil
}
