INSERT INTO sluice.namespaces (name, created_by) VALUES ($1, $2) RETURNING name, created_at, created_by
