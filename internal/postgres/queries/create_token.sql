INSERT INTO sluice.tokens (version, updated_by, created_by, id, name, grants, hash, expires_at)
VALUES ($1, $2, $2, $3, $4, $5::text::jsonb, $6, $7)
RETURNING id, name, grants::text, hash, created_at, created_by, expires_at, revoked_at, version, updated_at, updated_by
