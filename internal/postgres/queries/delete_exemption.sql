DELETE FROM sluice.exemptions WHERE dimension = $1 AND id = $2
