SELECT name, revision, version, seen_at FROM sluice.nodes ORDER BY name
