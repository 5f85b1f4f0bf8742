UPDATE sluice.overrides SET
    version = $1, updated_by = $2, updated_at = now(), rule = $4, limits = $5::text::jsonb, valid_from = $6, valid_until = $7, reason = $8,
    author = coalesce(nullif($9, ''), $2)
WHERE id = $3
RETURNING id, namespace, dimension, subject, rule, limits::text, valid_from, valid_until, reason, author, version, updated_at, updated_by
