-- In the order of ids, so that two nodes who add to the same keys wait for each other instead of locking each other out.
INSERT INTO sluice.key_uses AS u (id, uses, last_used_at)
SELECT k.id, sum(told.uses), max(told.last_used_at)
FROM unnest($1::text[], $2::bigint[], $3::timestamptz[]) AS told (id, uses, last_used_at) JOIN sluice.api_keys k ON k.id = told.id
GROUP BY k.id ORDER BY k.id
ON CONFLICT (id) DO UPDATE SET uses = u.uses + excluded.uses, last_used_at = greatest(u.last_used_at, excluded.last_used_at)
RETURNING id
