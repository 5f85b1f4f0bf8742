SELECT k.id, k.name, k.owner, k.tenant, k.tier, k.created_at, k.created_by, k.expires_at, k.revoked_at, k.revoked_by,
    k.hash, CASE WHEN k.old_until > now() THEN k.old_hash END, k.old_until,
    coalesce(u.uses, 0), u.last_used_at, k.version, k.updated_at, k.updated_by
FROM sluice.api_keys k LEFT JOIN sluice.key_uses u USING (id) WHERE k.id = $1
