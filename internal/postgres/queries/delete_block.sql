DELETE FROM sluice.blocks WHERE dimension = $1 AND id = $2
