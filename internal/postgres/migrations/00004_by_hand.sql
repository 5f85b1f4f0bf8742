-- +goose Up

-- A row written by hand has a version like any other, so that operators can say which one they mean to replace or delete. 0 is none.
-- +goose StatementBegin
DO $$
DECLARE
    t text;
BEGIN
    -- Their owner, too, is held to row-level security.
    PERFORM set_config('sluice.reads', '["*"]', true), set_config('sluice.operates', '["*"]', true), set_config('sluice.administers', '["*"]', true);
    FOREACH t IN ARRAY ARRAY['rules', 'tiers', 'subjects', 'overrides', 'api_keys', 'blocks', 'exemptions', 'tokens'] LOOP
        EXECUTE format('ALTER TABLE sluice.%I ALTER COLUMN version SET DEFAULT 1', t);
        EXECUTE format('UPDATE sluice.%I SET version = 1 WHERE version = 0', t);
    END LOOP;
END
$$;
-- +goose StatementEnd
