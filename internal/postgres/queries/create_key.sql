INSERT INTO sluice.api_keys AS k (version, updated_by, created_by, id, name, owner, tenant, tier, expires_at, hash)
VALUES ($1, $2, $2, $3, $4, $5, $6, $7, $8, $9)
RETURNING k.id, k.name, k.owner, k.tenant, k.tier, k.created_at, k.created_by, k.expires_at, k.revoked_at, k.revoked_by,
    k.hash, CASE WHEN k.old_until > now() THEN k.old_hash END, k.old_until,
    coalesce((SELECT u.uses FROM sluice.key_uses u WHERE u.id = k.id), 0), (SELECT u.last_used_at FROM sluice.key_uses u WHERE u.id = k.id), k.version, k.updated_at, k.updated_by
