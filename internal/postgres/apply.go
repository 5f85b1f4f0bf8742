package postgres

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

var (
	//go:embed queries/all_rules.sql
	allRules string
	//go:embed queries/namespace_seen.sql
	namespaceSeen string
	//go:embed queries/put_rules.sql
	putRules string
	//go:embed queries/delete_rules.sql
	deleteRules string
	//go:embed queries/rules_at.sql
	rulesAt string
)

// ApplyRules makes the rules of a namespace those given, in one revision; with prune, all others are deleted. Rules that are the same
// already are not touched, and when all are there is no new revision. Of the edit IfVersions counts, not IfVersion.
func (s *Scoped) ApplyRules(ctx context.Context, namespace string, rules []ruledoc.Rule, prune bool, e registry.Edit) (registry.Applied, error) {
	a := newApplied()
	revision, err := s.write(ctx, "apply rules in namespace "+namespace, e, func(ctx context.Context, w *writer) error {
		return a.apply(ctx, w, namespace, rules, prune)
	})
	a.Revision = revision
	return a.Applied, err
}

// RollbackRules makes the rules of a namespace what they were at a revision, as a new revision. Revisions before the first and after the
// present are not found. It is an ApplyRules with prune.
func (s *Scoped) RollbackRules(ctx context.Context, namespace string, to sluice.Revision, e registry.Edit) (registry.Applied, error) {
	if e.Reason == "" {
		e.Reason = fmt.Sprintf("rollback to revision %d", to)
	}
	a := newApplied()
	revision, err := s.write(ctx, fmt.Sprintf("roll back namespace %s to revision %d", namespace, to), e, func(ctx context.Context, w *writer) error {
		if to < 0 || to >= w.revision {
			return fmt.Errorf("%w: the present revision is %d", registry.ErrNotFound, w.revision-1)
		}
		rows, _ := w.tx.Query(ctx, rulesAt, namespace, int64(to))
		then, err := pgx.CollectRows(rows, scanFormer)
		if err != nil {
			return err
		}
		return a.apply(ctx, w, namespace, then, true)
	})
	a.Revision = revision
	return a.Applied, err
}

// scanFormer reads a rule from the history.
func scanFormer(row pgx.CollectableRow) (ruledoc.Rule, error) {
	var (
		r    ruledoc.Rule
		name string
		text []byte
	)
	if err := row.Scan(&name, &text); err != nil {
		return r, err
	}
	if err := decodeStrictly(text, &r); err != nil {
		return r, fmt.Errorf("%w: rule %q was of a form that is not understood any more: %w", registry.ErrInvalid, name, err)
	}
	r.Name = name
	return r, nil
}

// applied sorts rules by what became of them.
type applied struct {
	registry.Applied
	names, bodies []string // to write
}

// newApplied has empty lists, which JSON shows as such.
func newApplied() *applied {
	return &applied{Applied: registry.Applied{Created: []string{}, Updated: []string{}, Deleted: []string{}, Same: []string{}}}
}

func (a *applied) apply(ctx context.Context, w *writer, namespace string, rules []ruledoc.Rule, prune bool) error {
	var seen bool
	if err := w.tx.QueryRow(ctx, namespaceSeen, namespace).Scan(&seen); err != nil {
		return err
	}
	if !seen { // nothing to be seen is not nothing to do
		return fmt.Errorf("%w: there is no such namespace: create it first", registry.ErrNotFound)
	}
	rows, _ := w.tx.Query(ctx, allRules, namespace)
	there, err := pgx.CollectRows(rows, scanStored)
	if err != nil {
		return err
	}
	current := make(map[string]*stored, len(there))
	for i := range there {
		current[there[i].Name] = &there[i]
	}
	if err := meantAll(w.edit.IfVersions, current, rules, prune); err != nil {
		return err
	}
	for _, r := range rules {
		if err := a.put(w, namespace, r, current); err != nil {
			return err
		}
	}
	for _, old := range there {
		if prune && !old.kept {
			a.Deleted = append(a.Deleted, old.Name)
			if err := w.log(registry.KindRule, namespace, old.Name, registry.Who{}, old.Body, nil); err != nil {
				return err
			}
		}
	}
	if len(w.changes) == 0 {
		return errUnchanged
	}
	return a.send(ctx, w, namespace)
}

// meantAll checks that the rules concerned are those the edit was made for.
func meantAll(made map[string]int64, current map[string]*stored, rules []ruledoc.Rule, prune bool) error {
	if made == nil {
		return nil
	}
	concerned := map[string]bool{}
	for _, r := range rules {
		concerned[r.Name] = true
	}
	if prune {
		for name := range current {
			concerned[name] = true
		}
		for name := range made {
			concerned[name] = true
		}
	}
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(concerned)) {
		version, wasThere := made[name]
		switch now := current[name]; {
		case now == nil && wasThere:
			changed = append(changed, fmt.Sprintf("rule %q was deleted", name))
		case now != nil && !wasThere:
			changed = append(changed, fmt.Sprintf("rule %q was added by %q", name, cmp.Or(now.UpdatedBy, directSQL)))
		case now != nil && now.Version != version:
			changed = append(changed, fmt.Sprintf("rule %q was changed by %q", name, cmp.Or(now.UpdatedBy, directSQL)))
		}
	}
	if more := len(changed) - maxNamed; more > 0 {
		changed = append(changed[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	if changed != nil {
		return fmt.Errorf("%w: %s", registry.ErrConflict, strings.Join(changed, ", "))
	}
	return nil
}

const (
	// maxNamed is how many rules a conflict names: as many as one would read.
	maxNamed = 20
	// directSQL stands for who names nobody: everyone else has to.
	directSQL = "direct SQL"
)

// put sorts one rule.
func (a *applied) put(w *writer, namespace string, r ruledoc.Rule, current map[string]*stored) error {
	text, err := encodeRule(r)
	if err != nil {
		return err
	}
	var before any
	old := current[r.Name]
	switch {
	case old != nil && old.kept:
		return fmt.Errorf("%w: rule %q stands twice in what is to be applied", registry.ErrInvalid, r.Name)
	case old == nil:
		old = &stored{}
		current[r.Name] = old
		a.Created = append(a.Created, r.Name)
	case old.same(text):
		old.kept = true
		a.Same = append(a.Same, r.Name)
		return nil
	default:
		before = old.Body
		a.Updated = append(a.Updated, r.Name)
	}
	old.kept = true
	a.names, a.bodies = append(a.names, r.Name), append(a.bodies, text)
	r.Namespace = namespace
	return w.log(registry.KindRule, namespace, r.Name, registry.Who{}, before, r)
}

// send writes and deletes: two statements for any number of rules.
func (a *applied) send(ctx context.Context, w *writer, namespace string) error {
	if len(a.names) > 0 {
		if _, err := w.tx.Exec(ctx, putRules, int64(w.revision), w.edit.Actor, namespace, a.names, a.bodies); err != nil {
			return err
		}
	}
	if len(a.Deleted) == 0 {
		return nil
	}
	tag, err := w.tx.Exec(ctx, deleteRules, namespace, a.Deleted)
	if err == nil && tag.RowsAffected() != int64(len(a.Deleted)) { // row-level security passed over them
		err = registry.ErrForbidden
	}
	return err
}

// stored is a rule that is there, with the text it has in the database.
type stored struct {
	registry.Rule
	kept   bool // among those applied
	faulty bool // not understood
}

func scanStored(row pgx.CollectableRow) (stored, error) {
	r, err := scanRule(row)
	if err != nil {
		return stored{}, err
	}
	raw := row.RawValues()
	return stored{Rule: r, faulty: decodeStrictly(raw[len(raw)-1], new(ruledoc.Rule)) != nil}, nil
}

// same tells whether a rule is written already as it is to be. What was not understood is never the same.
func (s *stored) same(text string) bool {
	now, err := encodeRule(s.Body)
	return err == nil && !s.faulty && now == text
}
