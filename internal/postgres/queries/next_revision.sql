UPDATE sluice.revision SET value = value + 1 RETURNING value
