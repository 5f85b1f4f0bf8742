SELECT dimension, id, version, updated_at, updated_by, reason, author, until FROM sluice.blocks WHERE (dimension, id) > ($1, $2) ORDER BY dimension, id LIMIT $3
