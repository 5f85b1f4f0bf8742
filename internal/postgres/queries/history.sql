SELECT revision, seq, at, actor, reason, request_id, namespace, kind, name, before::text, after::text FROM sluice.changes
WHERE (revision, seq) < ($1, $2)
    AND ($3 = '' OR namespace = $3) AND ($4 = '' OR kind = $4) AND ($5 = '' OR name = $5) AND ($6 = '' OR actor = $6)
ORDER BY revision DESC, seq DESC LIMIT $7
