SELECT namespace, name, version, updated_at, updated_by, body::text FROM sluice.rules WHERE namespace = $1 AND name > $2 ORDER BY name LIMIT $3
