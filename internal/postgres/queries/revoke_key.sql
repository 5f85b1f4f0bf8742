UPDATE sluice.api_keys AS k SET version = $1, updated_by = $2, updated_at = now(), revoked_at = now(), revoked_by = $2
WHERE k.id = $3
RETURNING k.id, k.name, k.owner, k.tenant, k.tier, k.created_at, k.created_by, k.expires_at, k.revoked_at, k.revoked_by,
    k.hash, CASE WHEN k.old_until > now() THEN k.old_hash END, k.old_until,
    coalesce((SELECT u.uses FROM sluice.key_uses u WHERE u.id = k.id), 0), (SELECT u.last_used_at FROM sluice.key_uses u WHERE u.id = k.id), k.version, k.updated_at, k.updated_by
