-- The revision comes with each row because it is read in the same moment then: what others write between two statements would look like a fault.
-- Without changes there is one row still. Times are texts, because not every time that somebody who tampers can write is a number.
-- The planner does not know that the revision is one row, so it is told: it would compile the statement anew for each page.
SELECT r.value, r.head_revision, r.head, c.revision, c.seq, c.at, c.actor, c.reason, c.request_id, c.namespace, c.kind, c.name, c.before, c.after, c.hash
FROM (SELECT value, head_revision, head FROM sluice.revision LIMIT 1) AS r LEFT JOIN LATERAL (
    SELECT revision, seq, trunc(extract(epoch FROM at) * 1000000)::text AS at, actor, reason, request_id, namespace, kind, name,
        before::text AS before, after::text AS after, hash
    FROM sluice.changes WHERE (revision, seq) > ($1::bigint, $2::bigint)
    ORDER BY revision, seq LIMIT $3
) AS c ON true
ORDER BY c.revision, c.seq
