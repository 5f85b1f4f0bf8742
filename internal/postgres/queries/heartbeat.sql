INSERT INTO sluice.nodes AS n (name, revision, version, seen_at)
SELECT DISTINCT ON (name) name, revision, version, coalesce(seen_at, now())
FROM unnest($1::text[], $2::bigint[], $3::text[], $4::timestamptz[]) AS told (name, revision, version, seen_at)
ORDER BY name, seen_at DESC
ON CONFLICT (name) DO UPDATE SET revision = excluded.revision, version = excluded.version, seen_at = excluded.seen_at
WHERE n.seen_at <= excluded.seen_at
