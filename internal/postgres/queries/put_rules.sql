INSERT INTO sluice.rules (version, updated_by, namespace, name, body)
SELECT $1, $2, $3, r.name, r.body::jsonb FROM unnest($4::text[], $5::text[]) AS r (name, body)
ON CONFLICT (namespace, name) DO UPDATE SET version = excluded.version, updated_by = excluded.updated_by, updated_at = now(), body = excluded.body
