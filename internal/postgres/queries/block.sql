SELECT dimension, id, version, updated_at, updated_by, reason, author, until FROM sluice.blocks WHERE dimension = $1 AND id = $2
