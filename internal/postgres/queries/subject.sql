SELECT dimension, id, version, updated_at, updated_by, tier, tier_since FROM sluice.subjects WHERE dimension = $1 AND id = $2
