SELECT name, version, updated_at, updated_by, body::text FROM sluice.tiers WHERE name = $1
