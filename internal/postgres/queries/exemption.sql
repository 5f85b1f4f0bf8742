SELECT dimension, id, version, updated_at, updated_by, reason, author FROM sluice.exemptions WHERE dimension = $1 AND id = $2
