SELECT dimension, id, version, updated_at, updated_by, tier, tier_since FROM sluice.subjects
WHERE (dimension, id) > ($1, $2) ORDER BY dimension, id LIMIT $3
