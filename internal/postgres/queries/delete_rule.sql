DELETE FROM sluice.rules WHERE namespace = $1 AND name = $2
