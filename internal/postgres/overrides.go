package postgres

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehq/sluice/internal/registry"
)

var (
	//go:embed queries/overrides.sql
	overridesSQL string
	//go:embed queries/override.sql
	overrideSQL string
	//go:embed queries/create_override.sql
	createOverride string
	//go:embed queries/put_override.sql
	putOverride string
	//go:embed queries/delete_override.sql
	deleteOverride string
)

func overrideAt(id int64, o registry.Override) place[registry.Override] {
	return place[registry.Override]{
		kind: registry.KindOverride, namespace: o.Namespace, name: strconv.FormatInt(id, 10), who: o.Who,
		get: overrideSQL, key: []any{id}, scan: scanOverride,
	}
}

// scanOverride reads a row. Limits that cannot be understood are none.
func scanOverride(row pgx.CollectableRow) (registry.Entry[registry.Override], error) {
	var (
		e           registry.Entry[registry.Override]
		o           = &e.Body
		id          int64
		from, until *time.Time
		limits      []byte
	)
	err := row.Scan(&id, &o.Namespace, &o.Who.Dimension, &o.Who.ID, &o.Rule, &limits, &from, &until, &o.Reason, &o.Author,
		&e.Version, &e.UpdatedAt, &e.UpdatedBy)
	if err != nil {
		return e, err
	}
	if err := decodeStrictly(limits, &o.Limits); err != nil {
		o.Limits = nil
	}
	o.ID = strconv.FormatInt(id, 10)
	o.ValidFrom, o.ValidUntil = orZero(from), orZero(until)
	e.Namespace, e.Name, e.UpdatedAt = o.Namespace, o.ID, e.UpdatedAt.UTC()
	return e, nil
}

// Overrides returns those that the filter chooses, in the order they were made.
func (s *Scoped) Overrides(ctx context.Context, f registry.OverrideFilter, p registry.Page) (registry.Listed[registry.Entry[registry.Override]], error) {
	after, err := parseCursor(p.After, "0")
	if err != nil {
		return registry.Listed[registry.Entry[registry.Override]]{}, err
	}
	id, err := parseID(after[0])
	if err != nil {
		return registry.Listed[registry.Entry[registry.Override]]{}, err
	}
	listed, err := list(ctx, s, p, scanOverride, byName, overridesSQL, id, f.Namespace, f.Who.Dimension, f.Who.ID, f.Rule)
	return listed, fault("list overrides", err)
}

// parseID reads a number that the database gave.
func parseID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %q is not an id of an override", registry.ErrInvalid, text)
	}
	return id, nil
}

// Override returns an override.
func (s *Scoped) Override(ctx context.Context, id string) (registry.Entry[registry.Override], error) {
	number, err := parseID(id)
	if err != nil {
		return registry.Entry[registry.Override]{}, err
	}
	return overrideAt(number, registry.Override{}).read(ctx, s)
}

// PutOverride writes an override: a new one where it has no ID, otherwise the one of that ID, whose namespace and subject stay. Without an
// author it is the actor.
func (s *Scoped) PutOverride(ctx context.Context, o registry.Override, e registry.Edit) (registry.Entry[registry.Override], error) {
	limits, err := json.Marshal(o.Limits)
	if err != nil {
		return registry.Entry[registry.Override]{}, err
	}
	if o.ID == "" {
		return s.addOverride(ctx, o, string(limits), e)
	}
	id, err := parseID(o.ID)
	if err != nil {
		return registry.Entry[registry.Override]{}, err
	}
	var after registry.Entry[registry.Override]
	_, err = s.write(ctx, "write override "+o.ID, e, func(ctx context.Context, w *writer) error {
		before, err := overrideAt(id, o).current(ctx, w)
		switch {
		case err != nil:
			return err
		case before == nil:
			return registry.ErrNotFound
		}
		if err := meant(e, before); err != nil {
			return err
		}
		after, err = overrideAt(id, before.Body).replace(ctx, w, before, putOverride,
			id, o.Rule, string(limits), timeOrNull(o.ValidFrom), timeOrNull(o.ValidUntil), o.Reason, o.Author)
		return err
	})
	return after, err
}

func (s *Scoped) addOverride(ctx context.Context, o registry.Override, limits string, e registry.Edit) (registry.Entry[registry.Override], error) {
	var after registry.Entry[registry.Override]
	_, err := s.write(ctx, "add override", e, func(ctx context.Context, w *writer) (err error) {
		rows, _ := w.tx.Query(ctx, createOverride, int64(w.revision), w.edit.Actor, o.Namespace, o.Who.Dimension, o.Who.ID,
			o.Rule, limits, timeOrNull(o.ValidFrom), timeOrNull(o.ValidUntil), o.Reason, o.Author)
		if after, err = pgx.CollectExactlyOneRow(rows, scanOverride); err != nil {
			return err
		}
		return w.log(registry.KindOverride, o.Namespace, after.Name, o.Who, nil, after.Body)
	})
	return after, err
}

// DeleteOverride deletes an override.
func (s *Scoped) DeleteOverride(ctx context.Context, id string, e registry.Edit) error {
	number, err := parseID(id)
	if err != nil {
		return err
	}
	_, err = s.write(ctx, "delete override "+id, e, func(ctx context.Context, w *writer) error {
		before, err := overrideAt(number, registry.Override{}).current(ctx, w)
		switch {
		case err != nil:
			return err
		case before == nil:
			return registry.ErrNotFound
		}
		if err := meant(e, before); err != nil {
			return err
		}
		return overrideAt(number, before.Body).erase(ctx, w, before, deleteOverride)
	})
	return err
}
