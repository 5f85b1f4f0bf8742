package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluicehq/sluice/internal/registry"
)

var (
	//go:embed queries/import_table.sql
	importTable string
	//go:embed queries/import_merge.sql
	importMerge string
	//go:embed queries/import_twice.sql
	importTwice string
)

// ImportSubjects writes as many subjects as next gives, until it says false, and returns how many. All of them are there, as one change, or
// none. It takes as long as it takes: other writers are not held up but for its last moment. Next's own error ends it and is returned.
func (s *Scoped) ImportSubjects(ctx context.Context, next func() (registry.Subject, bool, error), e registry.Edit) (int64, error) {
	w := &writer{edit: e}
	var count int64
	err := s.inTransaction(ctx, w, func() error {
		if _, err := w.tx.Exec(ctx, importTable); err != nil {
			return err
		}
		source := &subjectRows{next: next}
		_, err := w.tx.CopyFrom(ctx, pgx.Identifier{"pg_temp", "import"}, []string{"dimension", "id", "tier", "tier_since"}, source)
		if source.err != nil {
			return source.err
		}
		if err != nil {
			return err
		}
		if count, err = merge(ctx, w); err != nil {
			return err
		}
		// The revision comes last, because it holds up every other writer.
		if err := w.takeRevision(ctx); err != nil {
			return err
		}
		if count == 0 {
			return errUnchanged
		}
		// Nobody is named in the notice: nodes forget all they know of subjects, which is cheaper than a million notices.
		if err := w.log(registry.KindSubject, "", "import", registry.Who{}, nil, map[string]int64{"subjects": count}); err != nil {
			return err
		}
		return w.finish(ctx)
	})
	var own *nextError
	if errors.As(err, &own) {
		return 0, own.err
	}
	return count, fault("import subjects", err)
}

// merge moves what was copied to its place.
func merge(ctx context.Context, w *writer) (int64, error) {
	try, err := w.tx.Begin(ctx)
	if err != nil {
		return 0, err
	}
	defer try.Rollback(ctx) //nolint:errcheck // after a commit it does nothing
	tag, err := try.Exec(ctx, importMerge, w.edit.Actor)
	if err == nil {
		return tag.RowsAffected(), try.Commit(ctx)
	}
	var answer *pgconn.PgError
	if !errors.As(err, &answer) || answer.Code != "21000" { // cardinality_violation
		return 0, err
	}
	if err := try.Rollback(ctx); err != nil {
		return 0, err
	}
	var who registry.Who
	if err := w.tx.QueryRow(ctx, importTwice).Scan(&who.Dimension, &who.ID); err != nil {
		return 0, err
	}
	return 0, fmt.Errorf("%w: subject %q stands twice in the import", registry.ErrInvalid, nameOf(who))
}

// nextError is an error of the one who gives the subjects.
type nextError struct{ err error }

func (e *nextError) Error() string { return e.err.Error() }
func (e *nextError) Unwrap() error { return e.err }

// subjectRows gives subjects to COPY.
type subjectRows struct {
	next  func() (registry.Subject, bool, error)
	row   registry.Subject
	count int64
	err   error
}

func (r *subjectRows) Next() bool {
	if r.err != nil {
		return false
	}
	row, ok, err := r.next()
	if err != nil {
		r.err = &nextError{err}
		return false
	}
	if !ok {
		return false
	}
	r.count++
	r.row = row
	if err := checkSubject(row); err != nil {
		r.err = fmt.Errorf("%w: subject %d of the import: %w", registry.ErrInvalid, r.count, err)
		return false
	}
	return true
}

func (r *subjectRows) Values() ([]any, error) {
	return []any{r.row.Dimension, r.row.ID, r.row.Tier, timeOrNull(r.row.TierSince)}, nil
}

func (r *subjectRows) Err() error { return r.err }

// checkSubject tells what is wrong with one of millions, which the database could not.
func checkSubject(s registry.Subject) error {
	switch {
	case s.Dimension != "user" && s.Dimension != "tenant" && s.Dimension != "api_key":
		return fmt.Errorf("dimension is %q: want user, tenant or api_key", s.Dimension)
	case !keepable(s.ID) || len([]rune(s.ID)) > 255:
		return fmt.Errorf("id is %q: want 1 to 255 characters of UTF-8 without NUL", s.ID)
	case s.Tier != "" && (!keepable(s.Tier) || len([]rune(s.Tier)) > 128):
		return fmt.Errorf("tier is %q: want at most 128 characters of UTF-8 without NUL", s.Tier)
	}
	return nil
}
