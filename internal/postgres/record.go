package postgres

import (
	"context"
	_ "embed"
	"encoding/json"
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

// KeyRecord is Record of an API key, by its id.
func (db *DB) KeyRecord(ctx context.Context, id string) (registry.Record, error) {
	return db.Record(ctx, registry.Who{Dimension: "api_key", ID: id})
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
	found, err := query(ctx, db, lookup{}, scanRecord, recordsSQL, dimensions, ids)
	if err != nil {
		return nil, fault("look up subjects", err)
	}
	for _, f := range found {
		place := at[f.place-1]
		for i := range f.record.Overrides {
			f.record.Overrides[i].Who = whos[place]
		}
		f.record.Found = true
		records[place] = f.record
	}
	return records, nil
}

// keepable tells whether the database could have such a name at all.
func keepable(name string) bool {
	return name != "" && len(name) <= 4*255 && utf8.ValidString(name) && !strings.Contains(name, "\x00")
}

type foundRecord struct {
	place  int64
	record registry.Record
}

func scanRecord(row pgx.CollectableRow) (foundRecord, error) {
	var (
		f         foundRecord
		r         = &f.record
		blocked   bool
		reason    *string
		until     *time.Time
		isKey     bool
		k         keyRow
		overrides []byte
	)
	err := row.Scan(append([]any{&f.place, &r.Tier, &r.Exempt, &blocked, &reason, &until, &overrides, &isKey}, k.columns()...)...)
	if err != nil {
		return f, err
	}
	if blocked {
		r.Blocked = &sluice.BlockedSubject{Reason: *reason, Until: orZero(until)}
	}
	if isKey {
		key := k.key()
		r.Key = &key
		if r.Tier == "" {
			r.Tier = key.Tier
		}
	}
	r.Overrides = decodeOverrides(overrides)
	return f, nil
}

// decodeOverrides leaves out what cannot be understood, each alone.
func decodeOverrides(text []byte) []registry.Override {
	var bodies []json.RawMessage
	if text == nil || json.Unmarshal(text, &bodies) != nil {
		return nil
	}
	overrides := make([]registry.Override, 0, len(bodies))
	for _, body := range bodies {
		var o registry.Override
		if decodeStrictly(body, &o) == nil {
			overrides = append(overrides, o)
		}
	}
	return overrides
}
