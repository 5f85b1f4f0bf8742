package postgres

import (
	"cmp"
	"context"
	_ "embed"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/registry"
)

var (
	//go:embed queries/records.sql
	recordsSQL string
	//go:embed queries/lookup_scope.sql
	lookupScope string
)

// lookup is everything, with the plan that single rows are found by.
type lookup struct{}

func (lookup) queueIn(b *pgx.Batch) {
	everything.queueIn(b)
	b.Queue(lookupScope)
}

// Record returns what is on record about a subject, in one round trip. Nothing on record is no error: Found is false. Blocks that have ended
// and overrides that ended are left out; overrides that begin later are not.
func (db *DB) Record(ctx context.Context, who registry.Who) (registry.Record, error) {
	list, err := db.Records(ctx, []registry.Who{who})
	if err != nil {
		return registry.Record{}, err
	}
	return list[0], nil
}

// Records returns the records of several subjects, in their order, in one round trip.
func (db *DB) Records(ctx context.Context, whos []registry.Who) ([]registry.Record, error) {
	records := make([]registry.Record, len(whos))
	var (
		at              []int // places in records of those who are asked for
		dimensions, ids []string
	)
	for i, w := range whos {
		if keepable(w.ID) && keepable(w.Dimension) { // one that is not would have the whole question refused
			at, dimensions, ids = append(at, i), append(dimensions, w.Dimension), append(ids, w.ID)
		}
	}
	if len(at) == 0 {
		return records, nil
	}
	rows, err := query(ctx, db, lookup{}, scanRecord, recordsSQL, dimensions, ids)
	if err != nil {
		return nil, fault("look up subjects", err)
	}
	for i := range rows {
		place := at[rows[i].place-1]
		rows[i].addTo(&records[place], whos[place])
	}
	for i := range records {
		slices.SortFunc(records[i].Overrides, newerFirst)
	}
	return records, nil
}

// keepable tells whether the database could have such a name at all.
func keepable(name string) bool {
	return name != "" && len(name) <= 4*255 && utf8.ValidString(name) && !strings.Contains(name, "\x00")
}

// recordRow is a row of the answer. Whoever has several overrides has as many rows, which differ in nothing else.
type recordRow struct {
	place         int64
	tier          string
	exempt        bool
	blocked       *string // why
	until         *time.Time
	override, key []byte // JSON
}

func scanRecord(row pgx.CollectableRow) (r recordRow, err error) {
	err = row.Scan(&r.place, &r.tier, &r.exempt, &r.blocked, &r.until, &r.override, &r.key)
	return r, err
}

// addTo puts a row into the record that it is of. What cannot be understood is left out, each thing alone: somebody wrote it by direct SQL.
func (row *recordRow) addTo(r *registry.Record, who registry.Who) {
	r.Found, r.Tier, r.Exempt = true, row.tier, row.exempt
	if row.blocked != nil {
		r.Blocked = &sluice.BlockedSubject{Reason: *row.blocked, Until: orZero(row.until)}
	}
	if row.override != nil {
		o := registry.Override{}
		if decodeStrictly(row.override, &o) == nil {
			o.Who = who
			r.Overrides = append(r.Overrides, o)
		}
	}
	if row.key != nil {
		r.Key = decodeKey(row.key)
		if r.Key != nil && r.Tier == "" {
			r.Tier = r.Key.Tier
		}
	}
}

// decodeKey returns nil for what cannot be understood: a key like any that is not on record.
func decodeKey(text []byte) *registry.Key {
	var k struct {
		registry.Key
		Hash    []byte `json:"hash"`
		OldHash []byte `json:"old_hash"`
	}
	if decodeStrictly(text, &k) != nil {
		return nil
	}
	key := k.Key
	key.Hashes = [][]byte{k.Hash}
	if k.OldHash != nil {
		key.Hashes = append(key.Hashes, k.OldHash)
	} else {
		key.OldUntil = time.Time{}
	}
	return &key
}

// newerFirst orders overrides by their ids, which are numbers that grow: of two for one rule the newer counts.
func newerFirst(a, b registry.Override) int {
	return cmp.Or(cmp.Compare(len(b.ID), len(a.ID)), cmp.Compare(b.ID, a.ID))
}
