package postgres

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/registry"
)

// channel is what notices are sent on.
const channel = "sluice_changes"

var (
	//go:embed queries/write_bounds.sql
	writeBounds string
	//go:embed queries/next_revision.sql
	nextRevision string
	//go:embed queries/add_changes.sql
	addChanges string
	//go:embed queries/notify.sql
	notifySQL string
)

// writer is a change being made, within its transaction.
type writer struct {
	tx       pgx.Tx
	edit     registry.Edit
	revision sluice.Revision
	changes  []registry.Change
	notices  []registry.Notice
}

// errUnchanged ends a write that found nothing to do: no revision is used up.
var errUnchanged = errors.New("nothing to change")

// write makes one change: fn says which, what it logs becomes history. The revision that the change has, or would have, comes back; with
// nothing to change it is the present one.
func (s *Scoped) write(ctx context.Context, attempted string, e registry.Edit, fn func(context.Context, *writer) error) (sluice.Revision, error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.timeout)
	defer cancel()
	w := &writer{edit: e}
	err := s.inTransaction(ctx, w, func() error {
		if err := w.takeRevision(ctx); err != nil {
			return err
		}
		if err := fn(ctx, w); err != nil {
			return err
		}
		return w.finish(ctx)
	})
	return w.revision, fault(attempted, err)
}

// inTransaction runs fn in a transaction with the actor's grants, and ends it: by a commit unless fn fails or the edit is a trial.
func (s *Scoped) inTransaction(ctx context.Context, w *writer, fn func() error) error {
	if w.edit.Actor == "" {
		w.edit.Actor = s.actor.Name
	}
	if w.edit.Actor == "" {
		return fmt.Errorf("%w: nobody is named as the one who makes the change", registry.ErrInvalid)
	}
	tx, err := s.db.pool.Begin(ctx)
	if err != nil {
		return err
	}
	// Also where the caller is gone: a connection left in a transaction would be thrown away.
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // after a commit it does nothing, otherwise the first error counts
	w.tx = tx
	var batch pgx.Batch
	s.grant.queueIn(&batch)
	batch.Queue(writeBounds)
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return err
	}
	if err := fn(); err != nil {
		if errors.Is(err, errUnchanged) {
			w.revision-- // what takeRevision added is rolled back
			return nil
		}
		return err
	}
	if w.edit.DryRun {
		return nil
	}
	return tx.Commit(ctx)
}

// takeRevision waits for other writers and takes the next number. From here to the end nobody else changes anything, so what is read is what
// will be there.
func (w *writer) takeRevision(ctx context.Context) error {
	return w.tx.QueryRow(ctx, nextRevision).Scan(&w.revision)
}

// log notes a change of an entry for the history and the notices. Bodies are nil where there is none.
func (w *writer) log(kind registry.Kind, namespace, name string, who registry.Who, before, after any) error {
	c := registry.Change{Namespace: namespace, Kind: kind, Name: name}
	for _, body := range []struct {
		from any
		to   *json.RawMessage
	}{{before, &c.Before}, {after, &c.After}} {
		if body.from == nil {
			continue
		}
		text, err := json.Marshal(body.from)
		if err != nil {
			return err
		}
		*body.to = text
	}
	w.changes = append(w.changes, c)
	notice := registry.Notice{Revision: w.revision, Kind: kind, Who: who}
	for _, n := range w.notices {
		if n == notice {
			return nil
		}
	}
	w.notices = append(w.notices, notice)
	return nil
}

// finish writes history and notices. All changes of a revision are one statement: the database chains them by hashes, and takes none for a
// revision that has some.
func (w *writer) finish(ctx context.Context) error {
	n := len(w.changes)
	namespaces, kinds, names := make([]string, n), make([]string, n), make([]string, n)
	before, after := make([]*string, n), make([]*string, n)
	for i, c := range w.changes {
		namespaces[i], kinds[i], names[i], before[i], after[i] = c.Namespace, string(c.Kind), c.Name, orNull(c.Before), orNull(c.After)
	}
	var batch pgx.Batch
	batch.Queue(addChanges, int64(w.revision), w.edit.Actor, w.edit.Reason, w.edit.RequestID, namespaces, kinds, names, before, after)
	for _, n := range w.notices {
		payload, err := json.Marshal(n)
		if err != nil {
			return err
		}
		batch.Queue(notifySQL, channel, string(payload))
	}
	return w.tx.SendBatch(ctx, &batch).Close()
}

// orNull gives the database NULL for no body.
func orNull(body json.RawMessage) *string {
	if body == nil {
		return nil
	}
	text := string(body)
	return &text
}

// timeOrNull gives the database NULL for no time.
func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// orZero is the way back.
func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
