SELECT value FROM sluice.revision
