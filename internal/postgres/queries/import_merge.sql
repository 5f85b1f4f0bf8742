WITH number AS MATERIALIZED (SELECT nextval('sluice.subject_versions') AS version)
INSERT INTO sluice.subjects AS s (version, updated_by, dimension, id, tier, tier_since)
SELECT number.version, $1, i.dimension, i.id, i.tier, coalesce(i.tier_since, CASE WHEN i.tier <> '' THEN now() END)
FROM pg_temp.import i CROSS JOIN number
ON CONFLICT (dimension, id) DO UPDATE SET
    version = excluded.version, updated_by = excluded.updated_by, updated_at = now(), tier = excluded.tier,
    tier_since = CASE WHEN s.tier = excluded.tier THEN s.tier_since ELSE excluded.tier_since END
