package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluicehq/sluice/internal/registry"
)

// fault turns what the driver returns into what callers branch on, with the thing attempted. Nil stays nil.
func fault(attempted string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", attempted, classify(err))
}

// classify wraps an error in one of the registry's where one fits.
func classify(err error) error {
	var answer *pgconn.PgError
	switch {
	case isKnown(err):
		return err
	case errors.As(err, &answer):
		return fromServer(answer)
	case errors.Is(err, pgx.ErrNoRows):
		return registry.ErrNotFound
	case errors.Is(err, context.Canceled):
		return err // the caller's own wish
	case errors.As(err, new(pgx.ScanArgError)):
		return err // our own mistake, or a row that somebody else wrote
	}
	// What is left is the way to the server: refused, reset, timed out, closed.
	return fmt.Errorf("%w: %w", registry.ErrUnavailable, advised(err))
}

func isKnown(err error) bool {
	for _, known := range [...]error{
		registry.ErrNotFound, registry.ErrConflict, registry.ErrExists, registry.ErrForbidden, registry.ErrInvalid, registry.ErrUnavailable,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// fromServer goes by the codes in appendix A of PostgreSQL's manual.
func fromServer(err *pgconn.PgError) error {
	switch err.Code {
	case "23505": // unique_violation
		if err.ConstraintName == "tiers_one_default" {
			return fmt.Errorf("%w: another tier is the default: unset it there first", registry.ErrConflict)
		}
		return registry.ErrExists
	case "23503": // foreign_key_violation: the only one an operator can meet is the namespace
		return fmt.Errorf("%w: there is no such namespace: create it first", registry.ErrNotFound)
	case "42501": // insufficient_privilege, of row-level security, too
		return fmt.Errorf("%w: %s", registry.ErrForbidden, err.Message)
	case "23514", "23502", "22001": // check_violation, not_null_violation, string_data_right_truncation
		return fmt.Errorf("%w: %s", registry.ErrInvalid, err.Message)
	case "22021", "22P05", "22P02", "22003", "22007", "22008": // characters, numbers and times that cannot be kept
		return fmt.Errorf("%w: %s", registry.ErrInvalid, err.Message)
	case "3F000", "42P01", "42703": // no such schema, table or column
		return fmt.Errorf("%w: %s: run sluice migrate", registry.ErrUnavailable, err.Message)
	case "25006", "57014", "55P03": // read_only_sql_transaction (a standby answers), query_canceled, lock_not_available
		return fmt.Errorf("%w: %w", registry.ErrUnavailable, err)
	}
	switch err.Code[:min(2, len(err.Code))] {
	case "08", "28", "3D", "53", "57", "58", "40": // connection, login, no such database, resources, shutting down, system, rolled back
		return fmt.Errorf("%w: %w", registry.ErrUnavailable, err)
	}
	return err
}

// hidePassword keeps the text of a URL that could not be read out of the error: it may hold a password in a place where the driver does
// not look for one.
func hidePassword(err error) error {
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) {
		if cause := parse.Unwrap(); cause != nil {
			return fmt.Errorf("%w; want postgres://user:password@host:5432/database", cause)
		}
		return errors.New("cannot be read: want postgres://user:password@host:5432/database")
	}
	return err
}
