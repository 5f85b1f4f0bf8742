-- One statement sees one moment: the rules are those of the revision.
SELECT 'revision' AS kind, '' AS namespace, '' AS name, value::text AS body FROM sluice.revision
UNION ALL
(SELECT 'rule', namespace, name, body::text FROM sluice.rules ORDER BY namespace, name)
UNION ALL
(SELECT 'tier', '', name, body::text FROM sluice.tiers ORDER BY name)
UNION ALL
(SELECT 'block', '', id, jsonb_strip_nulls(jsonb_build_object(
    'subject', jsonb_build_object('dimension', dimension, 'id', id), 'reason', reason, 'author', author, 'until', until))::text
 FROM sluice.blocks WHERE dimension = 'ip' AND (until IS NULL OR until > now()) ORDER BY id)
UNION ALL
(SELECT 'exemption', '', id, jsonb_build_object(
    'subject', jsonb_build_object('dimension', dimension, 'id', id), 'reason', reason, 'author', author)::text
 FROM sluice.exemptions WHERE dimension = 'ip' ORDER BY id)
