INSERT INTO sluice.changes (revision, seq, actor, reason, request_id, namespace, kind, name, before, after)
SELECT $1, c.place - 1, $2, $3, $4, c.namespace, c.kind, c.name, c.before::jsonb, c.after::jsonb
FROM unnest($5::text[], $6::text[], $7::text[], $8::text[], $9::text[]) WITH ORDINALITY AS c (namespace, kind, name, before, after, place)
ORDER BY c.place -- each is chained to the one before
