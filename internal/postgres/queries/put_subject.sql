-- $1, the revision, is not used: versions of subjects have a sequence of their own.
INSERT INTO sluice.subjects AS s (version, updated_by, dimension, id, tier, tier_since)
VALUES (nextval('sluice.subject_versions') + 0 * $1::bigint, $2, $3, $4, $5, coalesce($6, CASE WHEN $5 <> '' THEN now() END))
ON CONFLICT (dimension, id) DO UPDATE SET
    version = excluded.version, updated_by = excluded.updated_by, updated_at = now(), tier = excluded.tier,
    tier_since = CASE WHEN $6 IS NULL AND s.tier = excluded.tier THEN s.tier_since ELSE excluded.tier_since END
RETURNING dimension, id, version, updated_at, updated_by, tier, tier_since
