SELECT version_id FROM sluice.schema_version WHERE is_applied
