package postgres

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehq/sluice/internal/registry"
)

var (
	//go:embed queries/subjects.sql
	subjectsSQL string
	//go:embed queries/subject.sql
	subjectSQL string
	//go:embed queries/put_subject.sql
	putSubject string
	//go:embed queries/delete_subject.sql
	deleteSubject string
)

// nameOf is how a subject is called in entries and in the history.
func nameOf(w registry.Who) string { return w.Dimension + ":" + w.ID }

func subjectAt(who registry.Who) place[registry.Subject] {
	return place[registry.Subject]{
		kind: registry.KindSubject, name: nameOf(who), who: who, get: subjectSQL, key: []any{who.Dimension, who.ID}, scan: scanSubject,
	}
}

func scanSubject(row pgx.CollectableRow) (registry.Entry[registry.Subject], error) {
	var (
		e     registry.Entry[registry.Subject]
		since *time.Time
	)
	err := row.Scan(&e.Body.Dimension, &e.Body.ID, &e.Version, &e.UpdatedAt, &e.UpdatedBy, &e.Body.Tier, &since)
	e.Name, e.UpdatedAt, e.Body.TierSince = nameOf(e.Body.Who), e.UpdatedAt.UTC(), orZero(since)
	return e, err
}

// Subjects returns the subjects on record, by dimension and id.
func (s *Scoped) Subjects(ctx context.Context, p registry.Page) (registry.Listed[registry.Entry[registry.Subject]], error) {
	after, err := parseCursor(p.After, "", "")
	if err != nil {
		return registry.Listed[registry.Entry[registry.Subject]]{}, err
	}
	key := func(e registry.Entry[registry.Subject]) []string { return []string{e.Body.Dimension, e.Body.ID} }
	listed, err := list(ctx, s, p, scanSubject, key, subjectsSQL, after[0], after[1])
	return listed, fault("list subjects", err)
}

// Subject returns what is on record about a subject.
func (s *Scoped) Subject(ctx context.Context, who registry.Who) (registry.Entry[registry.Subject], error) {
	return subjectAt(who).read(ctx, s)
}

// PutSubject writes a subject. Without a TierSince it is now when the tier is another than before, and stays otherwise.
func (s *Scoped) PutSubject(ctx context.Context, sub registry.Subject, e registry.Edit) (registry.Entry[registry.Subject], error) {
	return subjectAt(sub.Who).put(ctx, s, e, putSubject, sub.Dimension, sub.ID, sub.Tier, timeOrNull(sub.TierSince))
}

// DeleteSubject deletes what is on record about a subject, but for its overrides, block and exemption.
func (s *Scoped) DeleteSubject(ctx context.Context, who registry.Who, e registry.Edit) error {
	return subjectAt(who).remove(ctx, s, e, deleteSubject)
}
