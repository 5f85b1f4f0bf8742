package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehq/sluice/internal/registry"
)

var (
	//go:embed queries/keys.sql
	keysSQL string
	//go:embed queries/key.sql
	keySQL string
	//go:embed queries/create_key.sql
	createKey string
	//go:embed queries/rotate_key.sql
	rotateKey string
	//go:embed queries/revoke_key.sql
	revokeKey string
)

func keyAt(id string) place[registry.Key] {
	return place[registry.Key]{
		kind: registry.KindKey, name: id, who: registry.Who{Dimension: "api_key", ID: id}, get: keySQL, key: []any{id}, scan: scanKey,
	}
}

// keyRow has the columns of a key that may be absent.
type keyRow struct {
	registry.Key
	hash, oldHash                        []byte
	oldUntil, expires, revoked, lastUsed *time.Time
}

// columns are where a row goes, in the order of the statements.
func (k *keyRow) columns() []any {
	return []any{
		&k.ID, &k.Name, &k.Owner, &k.Tenant, &k.Tier, &k.CreatedAt, &k.CreatedBy, &k.expires, &k.revoked, &k.RevokedBy,
		&k.hash, &k.oldHash, &k.oldUntil, &k.Uses, &k.lastUsed,
	}
}

// key puts it together. The statements leave out an old hash whose time has passed.
func (k *keyRow) key() registry.Key {
	key := k.Key
	key.CreatedAt, key.ExpiresAt, key.RevokedAt, key.LastUsedAt = key.CreatedAt.UTC(), orZero(k.expires), orZero(k.revoked), orZero(k.lastUsed)
	key.Hashes = [][]byte{k.hash}
	if k.oldHash != nil {
		key.Hashes = append(key.Hashes, k.oldHash)
		key.OldUntil = orZero(k.oldUntil)
	}
	return key
}

func scanKey(row pgx.CollectableRow) (registry.Entry[registry.Key], error) {
	var (
		e registry.Entry[registry.Key]
		k keyRow
	)
	err := row.Scan(append(k.columns(), &e.Version, &e.UpdatedAt, &e.UpdatedBy)...)
	e.Body = k.key()
	e.Name, e.UpdatedAt = e.Body.ID, e.UpdatedAt.UTC()
	return e, err
}

// Keys returns the API keys that the filter chooses, by id, revoked ones too.
func (s *Scoped) Keys(ctx context.Context, f registry.KeyFilter, p registry.Page) (registry.Listed[registry.Entry[registry.Key]], error) {
	after, err := parseCursor(p.After, "")
	if err != nil {
		return registry.Listed[registry.Entry[registry.Key]]{}, err
	}
	listed, err := list(ctx, s, p, scanKey, byName, keysSQL, after[0], f.Owner, f.Tenant)
	return listed, fault("list keys", err)
}

// Key returns an API key.
func (s *Scoped) Key(ctx context.Context, id string) (registry.Entry[registry.Key], error) {
	return keyAt(id).read(ctx, s)
}

// CreateKey writes a new API key with the one hash it has; registry.ErrExists where the ID is taken. Times, uses and names of actors are
// given by the database, but for ExpiresAt.
func (s *Scoped) CreateKey(ctx context.Context, k registry.Key, e registry.Edit) (registry.Entry[registry.Key], error) {
	if len(k.Hashes) != 1 {
		return registry.Entry[registry.Key]{}, fmt.Errorf("%w: a new key has one hash, not %d", registry.ErrInvalid, len(k.Hashes))
	}
	e.IfVersion = -1
	return keyAt(k.ID).put(ctx, s, e, createKey, k.ID, k.Name, k.Owner, k.Tenant, k.Tier, timeOrNull(k.ExpiresAt), k.Hashes[0])
}

// RotateKey gives a key another secret. The one before is valid until oldUntil; one before that no longer. Revoked keys are not found.
func (s *Scoped) RotateKey(ctx context.Context, id string, newHash []byte, oldUntil time.Time, e registry.Edit) (registry.Entry[registry.Key], error) {
	return s.changeKey(ctx, "rotate", id, e, rotateKey, newHash, oldUntil)
}

// RevokeKey ends a key for good. Keys that are revoked already are not found.
func (s *Scoped) RevokeKey(ctx context.Context, id string, e registry.Edit) (registry.Entry[registry.Key], error) {
	return s.changeKey(ctx, "revoke", id, e, revokeKey)
}

func (s *Scoped) changeKey(ctx context.Context, what, id string, e registry.Edit, sql string, args ...any) (registry.Entry[registry.Key], error) {
	var after registry.Entry[registry.Key]
	_, err := s.write(ctx, what+" key "+id, e, func(ctx context.Context, w *writer) error {
		before, err := keyAt(id).current(ctx, w)
		switch {
		case err != nil:
			return err
		case before == nil || !before.Body.RevokedAt.IsZero():
			return registry.ErrNotFound
		}
		if err := meant(e, before); err != nil {
			return err
		}
		after, err = keyAt(id).replace(ctx, w, before, sql, append([]any{id}, args...)...)
		return err
	})
	return after, err
}
