SELECT id, namespace, dimension, subject, rule, limits::text, valid_from, valid_until, reason, author, version, updated_at, updated_by
FROM sluice.overrides
WHERE id > $1 AND ($2 = '' OR namespace = $2) AND ($3 = '' OR dimension = $3) AND ($4 = '' OR subject = $4) AND ($5 = '' OR rule = $5)
ORDER BY id LIMIT $6
