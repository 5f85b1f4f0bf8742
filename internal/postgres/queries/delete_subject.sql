DELETE FROM sluice.subjects WHERE dimension = $1 AND id = $2
