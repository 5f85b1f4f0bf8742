DELETE FROM sluice.tiers WHERE name = $1
