-- +goose Up

-- Each change carries a hash over itself and over the hash of the change before it. So none can be altered, removed or put in afterwards without
-- all that follow being rewritten. docs/database.md tells what the hash covers, and the check computes it anew in Go: it need not trust the
-- functions below.

-- While this lasts (half a minute for 300,000 changes, whose table doubles) nodes can read the revision, and nobody can change anything.
LOCK TABLE sluice.revision IN EXCLUSIVE MODE;
ALTER TABLE sluice.changes ADD COLUMN hash bytea CHECK (octet_length(hash) = 32);

-- The length before the text keeps two rows from having the same bytes. That of NULL is -1.
CREATE FUNCTION sluice.with_length(value text) RETURNS bytea
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN coalesce(int4send(octet_length(convert_to(value, 'UTF8'))) || convert_to(value, 'UTF8'), int4send(-1));

-- Every column but the hash. One that comes later has to be put at the end, and only where it is not NULL: then older hashes stay right.
CREATE FUNCTION sluice.hashed(c sluice.changes) RETURNS bytea
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN int8send(c.revision) || int4send(c.seq) || int8send((extract(epoch FROM c.at) * 1000000)::bigint)
        || sluice.with_length(c.actor) || sluice.with_length(c.reason) || sluice.with_length(c.request_id)
        || sluice.with_length(c.namespace) || sluice.with_length(c.kind) || sluice.with_length(c.name)
        || sluice.with_length(c.before::text) || sluice.with_length(c.after::text);

-- The changes that are there. Their owner is not held to row-level security meanwhile, and nobody else gets at them before it is back.
ALTER TABLE sluice.changes NO FORCE ROW LEVEL SECURITY;
-- +goose StatementBegin
DO $$
DECLARE
    c sluice.changes;
    head bytea := decode(repeat('00', 32), 'hex');
BEGIN
    FOR c IN SELECT * FROM sluice.changes ORDER BY revision, seq LOOP
        head := sha256(head || sluice.hashed(c));
        UPDATE sluice.changes SET hash = head WHERE revision = c.revision AND seq = c.seq;
    END LOOP;
END
$$;
-- +goose StatementEnd
ALTER TABLE sluice.revision
    ADD COLUMN head_revision bigint NOT NULL DEFAULT 0,
    ADD COLUMN head          bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex') CHECK (octet_length(head) = 32);
UPDATE sluice.revision SET head = last.hash, head_revision = last.revision
    FROM (SELECT revision, hash FROM sluice.changes ORDER BY revision DESC, seq DESC LIMIT 1) AS last;
ALTER TABLE sluice.changes FORCE ROW LEVEL SECURITY;
ALTER TABLE sluice.changes ALTER COLUMN hash SET NOT NULL;

-- A hash that is given is overwritten. Changes are taken for the revision in force alone, in one statement and numbered from 0: so none comes
-- between others or late to its revision, and the application cannot spoil the chain. The head is moved at the end and not by each row: a row that
-- is updated ten thousand times in a transaction is found slower each time. So the hash before is that of the row before, and the one row that
-- is read of the history is of the same statement: whoever may write it may read it.
-- +goose StatementBegin
CREATE FUNCTION sluice.chain_change() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    previous bytea;
BEGIN
    SELECT head INTO previous FROM sluice.revision WHERE value = NEW.revision AND head_revision < NEW.revision FOR UPDATE;
    IF FOUND AND NEW.seq <> 0 THEN
        SELECT hash INTO previous FROM sluice.changes WHERE revision = NEW.revision AND seq = NEW.seq - 1;
    END IF;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'change % of revision % cannot be added: take the next revision and add all of its changes at once, numbered from 0',
            NEW.seq, NEW.revision USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    NEW.hash := sha256(previous || sluice.hashed(NEW));
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER chain_change BEFORE INSERT ON sluice.changes FOR EACH ROW EXECUTE FUNCTION sluice.chain_change();

-- With the rights of its owner: the application may not move the head, neither itself nor by this function on a table of its own.
-- +goose StatementBegin
CREATE FUNCTION sluice.move_head() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE sluice.revision SET head = last.hash, head_revision = last.revision
    FROM (SELECT revision, hash FROM added ORDER BY revision DESC, seq DESC LIMIT 1) AS last;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION sluice.move_head() FROM PUBLIC;
REVOKE UPDATE ON sluice.revision FROM sluice_app;
GRANT UPDATE (value) ON sluice.revision TO sluice_app;
CREATE TRIGGER move_head AFTER INSERT ON sluice.changes REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION sluice.move_head();
