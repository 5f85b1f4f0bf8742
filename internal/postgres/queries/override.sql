SELECT id, namespace, dimension, subject, rule, limits::text, valid_from, valid_until, reason, author, version, updated_at, updated_by
FROM sluice.overrides WHERE id = $1
