SELECT EXISTS (SELECT FROM sluice.namespaces WHERE name = $1)
