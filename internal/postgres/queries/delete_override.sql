DELETE FROM sluice.overrides WHERE id = $1
