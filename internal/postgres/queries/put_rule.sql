INSERT INTO sluice.rules (version, updated_by, namespace, name, body) VALUES ($1, $2, $3, $4, $5::text::jsonb)
ON CONFLICT (namespace, name) DO UPDATE SET version = excluded.version, updated_by = excluded.updated_by, updated_at = now(), body = excluded.body
RETURNING namespace, name, version, updated_at, updated_by, body::text
