-- The last word on each rule up to the revision; those whose last word is their end are left out.
SELECT name, after::text FROM (
    SELECT DISTINCT ON (name) name, after FROM sluice.changes
    WHERE kind = 'rule' AND namespace = $1 AND revision <= $2
    ORDER BY name, revision DESC, seq DESC
) AS last WHERE after IS NOT NULL ORDER BY name
