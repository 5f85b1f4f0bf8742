INSERT INTO sluice.overrides (version, updated_by, namespace, dimension, subject, rule, limits, valid_from, valid_until, reason, author)
VALUES ($1, $2, $3, $4, $5, $6, $7::text::jsonb, $8, $9, $10, coalesce(nullif($11, ''), $2))
RETURNING id, namespace, dimension, subject, rule, limits::text, valid_from, valid_until, reason, author, version, updated_at, updated_by
