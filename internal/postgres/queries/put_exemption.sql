INSERT INTO sluice.exemptions (version, updated_by, dimension, id, reason, author)
VALUES ($1, $2, $3, $4, $5, coalesce(nullif($6, ''), $2))
ON CONFLICT (dimension, id) DO UPDATE SET
    version = excluded.version, updated_by = excluded.updated_by, updated_at = now(), reason = excluded.reason, author = excluded.author
RETURNING dimension, id, version, updated_at, updated_by, reason, author
