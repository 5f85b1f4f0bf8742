package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehq/sluice/internal/registry"
)

// place is where one entry is kept, and how it is told of in the history.
type place[T any] struct {
	kind      registry.Kind
	namespace string
	name      string
	who       registry.Who
	get       string // the statement that finds it by key
	key       []any
	scan      pgx.RowToFunc[registry.Entry[T]]
}

func (p place[T]) String() string {
	if p.namespace != "" {
		return fmt.Sprintf("%s %q in namespace %q", p.kind, p.name, p.namespace)
	}
	return fmt.Sprintf("%s %q", p.kind, p.name)
}

// read returns the entry.
func (p place[T]) read(ctx context.Context, s *Scoped) (registry.Entry[T], error) {
	e, err := one(ctx, s, p.scan, p.get, p.key...)
	return e, fault(p.String(), err)
}

// current returns the entry within a change, nil where there is none.
func (p place[T]) current(ctx context.Context, w *writer) (*registry.Entry[T], error) {
	rows, _ := w.tx.Query(ctx, p.get, p.key...)
	list, err := pgx.CollectRows(rows, p.scan)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// meant checks that the entry is the one the edit was made for.
func meant[T any](e registry.Edit, current *registry.Entry[T]) error {
	switch {
	case e.IfVersion == 0:
		return nil
	case e.IfVersion < 0:
		if current != nil {
			return registry.ErrExists
		}
		return nil
	case current == nil:
		return fmt.Errorf("%w: it is gone", registry.ErrConflict)
	case current.Version != e.IfVersion:
		return fmt.Errorf("%w: it is at version %d, the edit was made for %d", registry.ErrConflict, current.Version, e.IfVersion)
	}
	return nil
}

// put writes the entry. The statement gets the version and the actor before the arguments, and returns what get would.
func (p place[T]) put(ctx context.Context, s *Scoped, e registry.Edit, sql string, args ...any) (registry.Entry[T], error) {
	var after registry.Entry[T]
	_, err := s.write(ctx, "write "+p.String(), e, func(ctx context.Context, w *writer) (err error) {
		before, err := p.current(ctx, w)
		if err != nil {
			return err
		}
		if err := meant(e, before); err != nil {
			return err
		}
		after, err = p.replace(ctx, w, before, sql, args...)
		return err
	})
	return after, err
}

// replace writes the entry within a change and logs it.
func (p place[T]) replace(ctx context.Context, w *writer, before *registry.Entry[T], sql string, args ...any) (registry.Entry[T], error) {
	rows, _ := w.tx.Query(ctx, sql, append([]any{int64(w.revision), w.edit.Actor}, args...)...)
	after, err := pgx.CollectExactlyOneRow(rows, p.scan)
	if errors.Is(err, pgx.ErrNoRows) { // an update of what was found a moment ago: row-level security passed over it
		err = registry.ErrForbidden
	}
	if err != nil {
		return after, err
	}
	return after, w.log(p.kind, p.namespace, p.name, p.who, body(before), after.Body)
}

// remove deletes the entry.
func (p place[T]) remove(ctx context.Context, s *Scoped, e registry.Edit, sql string) error {
	_, err := s.write(ctx, "delete "+p.String(), e, func(ctx context.Context, w *writer) error {
		before, err := p.current(ctx, w)
		switch {
		case err != nil:
			return err
		case before == nil:
			return registry.ErrNotFound
		}
		if err := meant(e, before); err != nil {
			return err
		}
		return p.erase(ctx, w, before, sql)
	})
	return err
}

// erase deletes the entry within a change and logs it.
func (p place[T]) erase(ctx context.Context, w *writer, before *registry.Entry[T], sql string) error {
	tag, err := w.tx.Exec(ctx, sql, p.key...)
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 { // it was found a moment ago, and nobody else writes: row-level security passed over it
		return registry.ErrForbidden
	}
	return w.log(p.kind, p.namespace, p.name, p.who, body(before), nil)
}

// body is nil, not a typed nil, where there is no entry.
func body[T any](e *registry.Entry[T]) any {
	if e == nil {
		return nil
	}
	return e.Body
}
