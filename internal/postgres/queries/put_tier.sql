INSERT INTO sluice.tiers (version, updated_by, name, body) VALUES ($1, $2, $3, $4::text::jsonb)
ON CONFLICT (name) DO UPDATE SET version = excluded.version, updated_by = excluded.updated_by, updated_at = now(), body = excluded.body
RETURNING name, version, updated_at, updated_by, body::text
