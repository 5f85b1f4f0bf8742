-- Whoever is not on record has no row in the answer, who has several overrides has as many. Most have nothing but a tier: all else is NULL
-- then, and one value each, because every column costs. Uses of keys are left out: they change all the time, and no decision hangs on them.
SELECT w.place, coalesce(s.tier, ''), x.id IS NOT NULL, b.reason, b.until, o.body, k.body
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS w (dimension, id, place)
LEFT JOIN sluice.subjects s ON s.dimension = w.dimension AND s.id = w.id
LEFT JOIN sluice.exemptions x ON x.dimension = w.dimension AND x.id = w.id
LEFT JOIN sluice.blocks b ON b.dimension = w.dimension AND b.id = w.id AND (b.until IS NULL OR b.until > now())
LEFT JOIN LATERAL (
    SELECT jsonb_strip_nulls(jsonb_build_object(
        'id', o.id::text, 'namespace', o.namespace, 'rule', o.rule, 'limits', o.limits, 'valid_from', o.valid_from,
        'valid_until', o.valid_until, 'reason', o.reason, 'author', o.author))::text AS body
    FROM sluice.overrides o
    WHERE o.dimension = w.dimension AND o.subject = w.id AND (o.valid_until IS NULL OR o.valid_until > now())
) AS o ON true
LEFT JOIN LATERAL (
    SELECT jsonb_strip_nulls(jsonb_build_object(
        'id', k.id, 'name', k.name, 'owner', k.owner, 'tenant', k.tenant, 'tier', k.tier, 'created_at', k.created_at,
        'created_by', k.created_by, 'expires_at', k.expires_at, 'revoked_at', k.revoked_at, 'revoked_by', k.revoked_by,
        'hash', encode(k.hash, 'base64'), 'old_hash', CASE WHEN k.old_until > now() THEN encode(k.old_hash, 'base64') END,
        'old_until', k.old_until))::text AS body
    FROM sluice.api_keys k
    WHERE k.id = CASE WHEN w.dimension = 'api_key' THEN w.id END -- NULL is sought nowhere
) AS k ON true
WHERE s.id IS NOT NULL OR x.id IS NOT NULL OR b.id IS NOT NULL OR o.body IS NOT NULL OR k.body IS NOT NULL
