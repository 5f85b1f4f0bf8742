package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehq/sluice/internal/registry"
)

//go:embed queries/history.sql
var historySQL string

// logged is a change with its place among those of its revision.
type logged struct {
	registry.Change
	seq int
}

func scanChange(row pgx.CollectableRow) (logged, error) {
	var (
		c             logged
		before, after []byte
	)
	err := row.Scan(&c.Revision, &c.seq, &c.At, &c.Actor, &c.Reason, &c.RequestID, &c.Namespace, &c.Kind, &c.Name, &before, &after)
	c.At, c.Before, c.After = c.At.UTC(), before, after
	return c, err
}

// History returns the changes that the filter chooses and the actor may read, the newest first.
func (s *Scoped) History(ctx context.Context, f registry.HistoryFilter, p registry.Page) (registry.Listed[registry.Change], error) {
	after, err := parseCursor(p.After, strconv.FormatInt(math.MaxInt64, 10), "0")
	if err != nil {
		return registry.Listed[registry.Change]{}, err
	}
	revision, err := strconv.ParseInt(after[0], 10, 64)
	seq, seqErr := strconv.ParseInt(after[1], 10, 32)
	if err != nil || seqErr != nil {
		return registry.Listed[registry.Change]{}, fmt.Errorf("%w: cursor", registry.ErrInvalid)
	}
	key := func(c logged) []string {
		return []string{strconv.FormatInt(int64(c.Revision), 10), strconv.Itoa(c.seq)}
	}
	rows, err := list(ctx, s, p, scanChange, key, historySQL, revision, seq, f.Namespace, string(f.Kind), f.Name, f.Actor)
	if err != nil {
		return registry.Listed[registry.Change]{}, fault("read the history", err)
	}
	listed := registry.Listed[registry.Change]{Items: make([]registry.Change, len(rows.Items)), Next: rows.Next}
	for i, c := range rows.Items {
		listed.Items[i] = c.Change
	}
	return listed, nil
}
