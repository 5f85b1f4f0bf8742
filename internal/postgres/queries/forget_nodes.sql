DELETE FROM sluice.nodes WHERE seen_at < now() - interval '1 hour'
