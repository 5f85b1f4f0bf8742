package postgres

import (
	"context"
	_ "embed"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehq/sluice/internal/registry"
)

var (
	//go:embed queries/tokens.sql
	tokensSQL string
	//go:embed queries/token.sql
	tokenSQL string
	//go:embed queries/create_token.sql
	createToken string
	//go:embed queries/revoke_token.sql
	revokeToken string
)

func tokenAt(id string) place[registry.Token] {
	return place[registry.Token]{kind: registry.KindToken, name: id, get: tokenSQL, key: []any{id}, scan: scanToken}
}

// scanToken reads a row. Grants that cannot be understood are none.
func scanToken(row pgx.CollectableRow) (registry.Entry[registry.Token], error) {
	var (
		e                registry.Entry[registry.Token]
		t                = &e.Body
		grants           []byte
		expires, revoked *time.Time
	)
	err := row.Scan(&t.ID, &t.Name, &grants, &t.Hash, &t.CreatedAt, &t.CreatedBy, &expires, &revoked, &e.Version, &e.UpdatedAt, &e.UpdatedBy)
	if err != nil {
		return e, err
	}
	if err := decodeStrictly(grants, &t.Grants); err != nil {
		t.Grants = nil
	}
	e.Name, e.UpdatedAt = t.ID, e.UpdatedAt.UTC()
	t.CreatedAt, t.ExpiresAt, t.RevokedAt = t.CreatedAt.UTC(), orZero(expires), orZero(revoked)
	return e, nil
}

// TokenByID returns a token, whoever asks: it is how somebody is known in the first place. Expired and revoked ones are returned, too.
func (db *DB) TokenByID(ctx context.Context, id string) (registry.Token, error) {
	if !keepable(id) {
		return registry.Token{}, registry.ErrNotFound
	}
	list, err := query(ctx, db, everything, scanToken, tokenSQL, id)
	if err == nil && len(list) == 0 {
		err = registry.ErrNotFound
	}
	if err != nil {
		return registry.Token{}, fault("token", err)
	}
	return list[0].Body, nil
}

// Tokens returns the tokens, by id, revoked ones too.
func (s *Scoped) Tokens(ctx context.Context, p registry.Page) (registry.Listed[registry.Entry[registry.Token]], error) {
	after, err := parseCursor(p.After, "")
	if err != nil {
		return registry.Listed[registry.Entry[registry.Token]]{}, err
	}
	listed, err := list(ctx, s, p, scanToken, byName, tokensSQL, after[0])
	return listed, fault("list tokens", err)
}

// Token returns a token.
func (s *Scoped) Token(ctx context.Context, id string) (registry.Entry[registry.Token], error) {
	return tokenAt(id).read(ctx, s)
}

// CreateToken writes a new token; registry.ErrExists where the ID is taken.
func (s *Scoped) CreateToken(ctx context.Context, t registry.Token, e registry.Edit) (registry.Entry[registry.Token], error) {
	grants, err := json.Marshal(t.Grants)
	if err != nil {
		return registry.Entry[registry.Token]{}, err
	}
	if t.Grants == nil {
		grants = []byte("[]")
	}
	e.IfVersion = -1
	return tokenAt(t.ID).put(ctx, s, e, createToken, t.ID, t.Name, string(grants), t.Hash, timeOrNull(t.ExpiresAt))
}

// RevokeToken ends a token for good. Tokens that are revoked already are not found.
func (s *Scoped) RevokeToken(ctx context.Context, id string, e registry.Edit) (registry.Entry[registry.Token], error) {
	var after registry.Entry[registry.Token]
	_, err := s.write(ctx, "revoke token "+id, e, func(ctx context.Context, w *writer) error {
		before, err := tokenAt(id).current(ctx, w)
		switch {
		case err != nil:
			return err
		case before == nil || !before.Body.RevokedAt.IsZero():
			return registry.ErrNotFound
		}
		if err := meant(e, before); err != nil {
			return err
		}
		after, err = tokenAt(id).replace(ctx, w, before, revokeToken, id)
		return err
	})
	return after, err
}
