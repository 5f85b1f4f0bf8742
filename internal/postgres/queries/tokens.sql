SELECT id, name, grants::text, hash, created_at, created_by, expires_at, revoked_at, version, updated_at, updated_by FROM sluice.tokens WHERE id > $1 ORDER BY id LIMIT $2
