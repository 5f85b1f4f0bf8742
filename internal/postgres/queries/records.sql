-- Whoever is not on record has no row in the answer. Of two overrides of one rule the newer counts, so it stands first. Uses of keys are
-- left out: they change all the time, and no decision hangs on them.
SELECT w.place, coalesce(s.tier, ''), x.id IS NOT NULL, b.id IS NOT NULL, b.reason, b.until, o.list::text, k.id IS NOT NULL,
    coalesce(k.id, ''), coalesce(k.name, ''), coalesce(k.owner, ''), coalesce(k.tenant, ''), coalesce(k.tier, ''),
    coalesce(k.created_at, 'epoch'), coalesce(k.created_by, ''), k.expires_at, k.revoked_at, coalesce(k.revoked_by, ''),
    k.hash, CASE WHEN k.old_until > now() THEN k.old_hash END, k.old_until, 0::bigint, NULL::timestamptz
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS w (dimension, id, place)
LEFT JOIN sluice.subjects s ON s.dimension = w.dimension AND s.id = w.id
LEFT JOIN sluice.exemptions x ON x.dimension = w.dimension AND x.id = w.id
LEFT JOIN sluice.blocks b ON b.dimension = w.dimension AND b.id = w.id AND (b.until IS NULL OR b.until > now())
LEFT JOIN sluice.api_keys k ON w.dimension = 'api_key' AND k.id = w.id
LEFT JOIN LATERAL (
    SELECT jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
        'id', o.id::text, 'namespace', o.namespace, 'rule', o.rule, 'limits', o.limits, 'valid_from', o.valid_from,
        'valid_until', o.valid_until, 'reason', o.reason, 'author', o.author)) ORDER BY o.id DESC) AS list
    FROM sluice.overrides o
    WHERE o.dimension = w.dimension AND o.subject = w.id AND (o.valid_until IS NULL OR o.valid_until > now())
) AS o ON true
WHERE s.id IS NOT NULL OR x.id IS NOT NULL OR b.id IS NOT NULL OR k.id IS NOT NULL OR o.list IS NOT NULL
