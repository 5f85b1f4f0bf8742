package postgres

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehq/sluice/internal/registry"
)

var (
	//go:embed queries/heartbeat.sql
	heartbeat string
	//go:embed queries/forget_nodes.sql
	forgetNodes string
	//go:embed queries/nodes.sql
	nodesSQL string
	//go:embed queries/add_uses.sql
	addUses string
)

// Heartbeat notes what nodes told of themselves, and forgets those who told nothing for an hour. The time is the database's where SeenAt is
// zero.
func (db *DB) Heartbeat(ctx context.Context, nodes []registry.Node) error {
	ctx, cancel := context.WithTimeout(ctx, db.timeout)
	defer cancel()
	names, revisions, versions, seen := make([]string, len(nodes)), make([]int64, len(nodes)), make([]string, len(nodes)), make([]*time.Time, len(nodes))
	for i, n := range nodes {
		names[i], revisions[i], versions[i], seen[i] = n.Name, int64(n.Revision), n.Version, timeOrNull(n.SeenAt)
	}
	var batch pgx.Batch
	batch.Queue(heartbeat, names, revisions, versions, seen)
	batch.Queue(forgetNodes)
	return fault("note heartbeats", db.pool.SendBatch(ctx, &batch).Close())
}

// Nodes returns the nodes seen within the last hour, by name.
func (db *DB) Nodes(ctx context.Context) ([]registry.Node, error) {
	list, err := query(ctx, db, everything, func(row pgx.CollectableRow) (n registry.Node, err error) {
		err = row.Scan(&n.Name, &n.Revision, &n.Version, &n.SeenAt)
		n.SeenAt = n.SeenAt.UTC()
		return n, err
	}, nodesSQL)
	return list, fault("list nodes", err)
}

// AddUses adds what API keys were used since it was last told, by their ids. Ids that are no key are passed over.
func (db *DB) AddUses(ctx context.Context, uses map[string]registry.Use) error {
	if len(uses) == 0 {
		return nil
	}
	ids, counts, last := make([]string, 0, len(uses)), make([]int64, 0, len(uses)), make([]time.Time, 0, len(uses))
	for id, u := range uses {
		if keepable(id) {
			ids, counts, last = append(ids, id), append(counts, u.Count), append(last, u.Last)
		}
	}
	_, err := query(ctx, db, everything, pgx.RowTo[string], addUses, ids, counts, last)
	return fault("add uses of keys", err)
}
