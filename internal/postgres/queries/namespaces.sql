SELECT name, created_at, created_by FROM sluice.namespaces ORDER BY name
