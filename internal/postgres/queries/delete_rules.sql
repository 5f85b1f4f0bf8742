DELETE FROM sluice.rules WHERE namespace = $1 AND name = ANY ($2::text[])
