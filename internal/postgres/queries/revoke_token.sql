UPDATE sluice.tokens SET version = $1, updated_by = $2, updated_at = now(), revoked_at = now() WHERE id = $3
RETURNING id, name, grants::text, hash, created_at, created_by, expires_at, revoked_at, version, updated_at, updated_by
