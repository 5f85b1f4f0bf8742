package postgres

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

var (
	//go:embed queries/snapshot.sql
	snapshotSQL string
	//go:embed queries/revision.sql
	revisionSQL string
)

// Revision returns the number of the last change.
func (db *DB) Revision(ctx context.Context) (sluice.Revision, error) {
	ctx, cancel := context.WithTimeout(ctx, db.timeout)
	defer cancel()
	var revision sluice.Revision
	err := db.pool.QueryRow(ctx, revisionSQL).Scan(&revision)
	return revision, fault("read the revision", err)
}

// piece is a row of the snapshot: one thing of some kind.
type piece struct{ kind, namespace, name, body string }

// Snapshot returns what nodes keep in memory, all of one revision. A row that cannot be understood is left out alone and told of.
func (db *DB) Snapshot(ctx context.Context) (registry.Snapshot, error) {
	pieces, err := query(ctx, db, everything, func(row pgx.CollectableRow) (p piece, err error) {
		return p, row.Scan(&p.kind, &p.namespace, &p.name, &p.body)
	}, snapshotSQL)
	if err != nil {
		return registry.Snapshot{}, fault("read the snapshot", err)
	}
	var s registry.Snapshot
	for _, p := range pieces {
		if err := p.addTo(&s); err != nil {
			s.Quarantined = append(s.Quarantined, p.quarantined(err))
		}
	}
	return s, nil
}

func (p piece) addTo(s *registry.Snapshot) error {
	body := []byte(p.body)
	switch registry.Kind(p.kind) {
	case "revision":
		n, err := strconv.ParseInt(p.body, 10, 64)
		s.Revision = sluice.Revision(n)
		return err
	case registry.KindRule:
		return add(&s.Rules, body, func(r *ruledoc.Rule) { r.Namespace, r.Name = p.namespace, p.name })
	case registry.KindTier:
		return add(&s.Tiers, body, func(t *registry.Tier) { t.Name = p.name })
	case registry.KindBlock:
		return add(&s.Blocks, body, nil)
	case registry.KindExemption:
		return add(&s.Exemptions, body, nil)
	}
	return fmt.Errorf("nothing is known of kind %q", p.kind)
}

// add decodes a body to the end of a list.
func add[T any](to *[]T, body []byte, named func(*T)) error {
	var v T
	if err := decodeStrictly(body, &v); err != nil {
		return err
	}
	if named != nil {
		named(&v)
	}
	*to = append(*to, v)
	return nil
}

// quarantined tells of a row and what is wrong with it. Of a long body it shows the beginning.
func (p piece) quarantined(err error) json.RawMessage {
	const shown = 1024
	text, _ := json.Marshal(map[string]string{ // strings always can be
		"kind": p.kind, "namespace": p.namespace, "name": p.name, "body": p.body[:min(len(p.body), shown)], "fault": err.Error(),
	})
	return text
}
