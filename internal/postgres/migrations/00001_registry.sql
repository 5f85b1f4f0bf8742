-- +goose Up

-- Nodes and administration connect as sluice_app, or as a member of it. It can read and write rows, and alter no table.
-- +goose StatementBegin
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'sluice_app') THEN
        CREATE ROLE sluice_app NOLOGIN;
    END IF;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE EXCEPTION 'there is no role sluice_app, and % may not create it: have an administrator run CREATE ROLE sluice_app LOGIN PASSWORD ''...''', current_user;
END
$$;
-- +goose StatementEnd
GRANT USAGE ON SCHEMA sluice TO sluice_app;
GRANT SELECT ON sluice.schema_version TO sluice_app;

-- Who may see and change a row is said by three settings of the transaction, each a JSON list of namespaces, in which "*" is all of them.
-- Nothing set is nothing allowed. What belongs to no namespace ('') acts in all of them, so it takes a grant for all of them.
-- +goose StatementBegin
CREATE FUNCTION sluice.may(setting text, namespace text) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN coalesce(nullif(current_setting(setting, true), '')::jsonb ?| ARRAY[coalesce(nullif(namespace, ''), '*'), '*'], false);
-- +goose StatementEnd

-- One row, locked by every writer: so revisions have no gaps and are visible in their order.
CREATE TABLE sluice.revision (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    value    bigint NOT NULL CHECK (value >= 0)
);
INSERT INTO sluice.revision (value) VALUES (0);

CREATE TABLE sluice.namespaces (
    name       text COLLATE "C" PRIMARY KEY CHECK (name <> '*' AND char_length(name) BETWEEN 1 AND 128),
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL DEFAULT ''
);
INSERT INTO sluice.namespaces (name, created_by) VALUES ('default', 'sluice migrate');

CREATE TABLE sluice.rules (
    namespace  text COLLATE "C" NOT NULL REFERENCES sluice.namespaces (name),
    name       text COLLATE "C" NOT NULL CHECK (char_length(name) BETWEEN 1 AND 128),
    body       jsonb NOT NULL CHECK (jsonb_typeof(body) = 'object'),
    version    bigint NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT now(),
    updated_by text NOT NULL DEFAULT '',
    PRIMARY KEY (namespace, name),
    CONSTRAINT rules_body_size CHECK (octet_length(body::text) <= 262144)
);

CREATE TABLE sluice.tiers (
    name       text COLLATE "C" PRIMARY KEY CHECK (char_length(name) BETWEEN 1 AND 128),
    body       jsonb NOT NULL CHECK (jsonb_typeof(body) = 'object'),
    version    bigint NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT now(),
    updated_by text NOT NULL DEFAULT '',
    CONSTRAINT tiers_body_size CHECK (octet_length(body::text) <= 262144)
);
-- At most one tier is that of everyone on none.
CREATE UNIQUE INDEX tiers_one_default ON sluice.tiers ((true)) WHERE body -> 'default' = 'true';

-- Subjects are many (tens of millions), so they have the columns they need and no more. Their versions come from a sequence: an import
-- numbers its rows before it takes the revision, which it would otherwise hold for minutes.
CREATE SEQUENCE sluice.subject_versions AS bigint;
CREATE TABLE sluice.subjects (
    version    bigint NOT NULL DEFAULT 0,
    tier_since timestamptz,
    updated_at timestamptz NOT NULL DEFAULT now(),
    dimension  text COLLATE "C" NOT NULL CHECK (dimension IN ('user', 'tenant', 'api_key')),
    id         text COLLATE "C" NOT NULL CHECK (char_length(id) BETWEEN 1 AND 255),
    tier       text COLLATE "C" NOT NULL DEFAULT '' CHECK (char_length(tier) <= 128),
    updated_by text NOT NULL DEFAULT '',
    PRIMARY KEY (dimension, id)
);

CREATE TABLE sluice.overrides (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace   text COLLATE "C" NOT NULL REFERENCES sluice.namespaces (name),
    dimension   text COLLATE "C" NOT NULL CHECK (dimension IN ('user', 'tenant', 'api_key')),
    subject     text COLLATE "C" NOT NULL CHECK (char_length(subject) BETWEEN 1 AND 255),
    rule        text COLLATE "C" NOT NULL CHECK (char_length(rule) BETWEEN 1 AND 128),
    limits      jsonb NOT NULL CHECK (jsonb_typeof(limits) = 'array' AND octet_length(limits::text) <= 16384),
    valid_from  timestamptz,
    valid_until timestamptz CHECK (valid_until > valid_from),
    reason      text NOT NULL DEFAULT '' CHECK (char_length(reason) <= 2000),
    author      text NOT NULL DEFAULT '',
    version     bigint NOT NULL DEFAULT 0,
    updated_at  timestamptz NOT NULL DEFAULT now(),
    updated_by  text NOT NULL DEFAULT ''
);
CREATE INDEX overrides_of_subject ON sluice.overrides (dimension, subject);
CREATE INDEX overrides_of_rule ON sluice.overrides (namespace, rule);

CREATE TABLE sluice.api_keys (
    id         text COLLATE "C" PRIMARY KEY CHECK (char_length(id) BETWEEN 1 AND 64),
    name       text NOT NULL DEFAULT '' CHECK (char_length(name) <= 255),
    owner      text COLLATE "C" NOT NULL CHECK (char_length(owner) BETWEEN 1 AND 255),
    tenant     text COLLATE "C" NOT NULL DEFAULT '' CHECK (char_length(tenant) <= 255),
    tier       text COLLATE "C" NOT NULL DEFAULT '' CHECK (char_length(tier) <= 128),
    hash       bytea NOT NULL CHECK (octet_length(hash) = 32),
    old_hash   bytea CHECK (octet_length(old_hash) = 32),
    old_until  timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL DEFAULT '',
    expires_at timestamptz,
    revoked_at timestamptz,
    revoked_by text NOT NULL DEFAULT '',
    version    bigint NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT now(),
    updated_by text NOT NULL DEFAULT '',
    CHECK ((old_hash IS NULL) = (old_until IS NULL))
);
CREATE INDEX api_keys_of_owner ON sluice.api_keys (owner, id);
CREATE INDEX api_keys_of_tenant ON sluice.api_keys (tenant, id) WHERE tenant <> '';

-- Written every few seconds by nodes, which may change nothing else about keys; the free space keeps updates on their page.
CREATE TABLE sluice.key_uses (
    id           text COLLATE "C" PRIMARY KEY REFERENCES sluice.api_keys (id) ON DELETE CASCADE,
    uses         bigint NOT NULL DEFAULT 0,
    last_used_at timestamptz NOT NULL
) WITH (fillfactor = 70);

CREATE TABLE sluice.blocks (
    dimension  text COLLATE "C" NOT NULL CHECK (dimension IN ('user', 'tenant', 'api_key', 'ip')),
    id         text COLLATE "C" NOT NULL CHECK (char_length(id) BETWEEN 1 AND 255),
    reason     text NOT NULL DEFAULT '' CHECK (char_length(reason) <= 2000),
    author     text NOT NULL DEFAULT '',
    until      timestamptz,
    version    bigint NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT now(),
    updated_by text NOT NULL DEFAULT '',
    PRIMARY KEY (dimension, id)
);

CREATE TABLE sluice.exemptions (
    dimension  text COLLATE "C" NOT NULL CHECK (dimension IN ('user', 'tenant', 'api_key', 'ip')),
    id         text COLLATE "C" NOT NULL CHECK (char_length(id) BETWEEN 1 AND 255),
    reason     text NOT NULL DEFAULT '' CHECK (char_length(reason) <= 2000),
    author     text NOT NULL DEFAULT '',
    version    bigint NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT now(),
    updated_by text NOT NULL DEFAULT '',
    PRIMARY KEY (dimension, id)
);

CREATE TABLE sluice.tokens (
    id         text COLLATE "C" PRIMARY KEY CHECK (char_length(id) BETWEEN 1 AND 64),
    name       text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 255),
    grants     jsonb NOT NULL CHECK (jsonb_typeof(grants) = 'array' AND octet_length(grants::text) <= 65536),
    hash       bytea NOT NULL CHECK (octet_length(hash) = 32),
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL DEFAULT '',
    expires_at timestamptz,
    revoked_at timestamptz,
    version    bigint NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT now(),
    updated_by text NOT NULL DEFAULT ''
);

-- The history. Rows are added in the transaction of the change and never altered: the application has no right to.
CREATE TABLE sluice.changes (
    revision   bigint NOT NULL,
    seq        integer NOT NULL,
    at         timestamptz NOT NULL DEFAULT now(),
    actor      text NOT NULL CHECK (actor <> ''),
    reason     text NOT NULL DEFAULT '' CHECK (char_length(reason) <= 2000),
    request_id text NOT NULL DEFAULT '' CHECK (char_length(request_id) <= 255),
    namespace  text COLLATE "C" NOT NULL DEFAULT '',
    kind       text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL,
    before     jsonb,
    after      jsonb,
    PRIMARY KEY (revision, seq)
);
CREATE INDEX changes_of_entry ON sluice.changes (kind, namespace, name, revision DESC, seq DESC);
CREATE INDEX changes_of_namespace ON sluice.changes (namespace, revision DESC, seq DESC);

CREATE TABLE sluice.nodes (
    name     text COLLATE "C" PRIMARY KEY CHECK (char_length(name) BETWEEN 1 AND 255),
    revision bigint NOT NULL,
    version  text NOT NULL DEFAULT '',
    seen_at  timestamptz NOT NULL
) WITH (fillfactor = 70);

GRANT SELECT, UPDATE ON sluice.revision TO sluice_app;
GRANT SELECT, INSERT ON sluice.namespaces, sluice.changes TO sluice_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON
    sluice.rules, sluice.tiers, sluice.subjects, sluice.overrides, sluice.blocks, sluice.exemptions, sluice.nodes TO sluice_app;
-- Keys and tokens are revoked, never deleted: what they did stays attributable.
GRANT SELECT, INSERT, UPDATE ON sluice.api_keys, sluice.key_uses, sluice.tokens TO sluice_app;
GRANT USAGE ON SEQUENCE sluice.subject_versions TO sluice_app;

-- The second wall behind the administration's table of routes and roles. Forced, so that it stands for the tables' owner, too.
-- Where it is the same for all rows it is asked for in a SELECT, which the planner has evaluated once: it takes a third off an import of millions.
-- Settings: sluice.reads (viewer and up), sluice.operates (operator and up), sluice.administers (admin).
ALTER TABLE sluice.namespaces ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY reads ON sluice.namespaces FOR SELECT USING (sluice.may('sluice.reads', name));
CREATE POLICY writes ON sluice.namespaces FOR ALL USING ((SELECT sluice.may('sluice.administers', ''))) WITH CHECK ((SELECT sluice.may('sluice.administers', '')));

ALTER TABLE sluice.rules ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY reads ON sluice.rules FOR SELECT USING (sluice.may('sluice.reads', namespace));
CREATE POLICY writes ON sluice.rules FOR ALL USING (sluice.may('sluice.administers', namespace)) WITH CHECK (sluice.may('sluice.administers', namespace));

ALTER TABLE sluice.overrides ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY reads ON sluice.overrides FOR SELECT USING (sluice.may('sluice.reads', namespace));
CREATE POLICY writes ON sluice.overrides FOR ALL USING (sluice.may('sluice.operates', namespace)) WITH CHECK (sluice.may('sluice.operates', namespace));

ALTER TABLE sluice.changes ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY reads ON sluice.changes FOR SELECT USING (sluice.may('sluice.reads', namespace));
CREATE POLICY writes ON sluice.changes FOR INSERT WITH CHECK (sluice.may('sluice.operates', namespace));

-- Tiers stand in the rules of every namespace, so whoever reads one namespace may read them.
ALTER TABLE sluice.tiers ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY reads ON sluice.tiers FOR SELECT USING (
    (SELECT coalesce(jsonb_array_length(nullif(current_setting('sluice.reads', true), '')::jsonb), 0) > 0));
CREATE POLICY writes ON sluice.tiers FOR ALL USING ((SELECT sluice.may('sluice.administers', ''))) WITH CHECK ((SELECT sluice.may('sluice.administers', '')));

ALTER TABLE sluice.subjects ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY reads ON sluice.subjects FOR SELECT USING ((SELECT sluice.may('sluice.reads', '')));
CREATE POLICY writes ON sluice.subjects FOR ALL USING ((SELECT sluice.may('sluice.operates', ''))) WITH CHECK ((SELECT sluice.may('sluice.operates', '')));

ALTER TABLE sluice.blocks ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY reads ON sluice.blocks FOR SELECT USING ((SELECT sluice.may('sluice.reads', '')));
CREATE POLICY writes ON sluice.blocks FOR ALL USING ((SELECT sluice.may('sluice.operates', ''))) WITH CHECK ((SELECT sluice.may('sluice.operates', '')));

ALTER TABLE sluice.exemptions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY reads ON sluice.exemptions FOR SELECT USING ((SELECT sluice.may('sluice.reads', '')));
CREATE POLICY writes ON sluice.exemptions FOR ALL USING ((SELECT sluice.may('sluice.operates', ''))) WITH CHECK ((SELECT sluice.may('sluice.operates', '')));

ALTER TABLE sluice.api_keys ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY reads ON sluice.api_keys FOR SELECT USING ((SELECT sluice.may('sluice.reads', '')));
CREATE POLICY writes ON sluice.api_keys FOR ALL USING ((SELECT sluice.may('sluice.administers', ''))) WITH CHECK ((SELECT sluice.may('sluice.administers', '')));

ALTER TABLE sluice.tokens ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY reads ON sluice.tokens FOR SELECT USING ((SELECT sluice.may('sluice.reads', '')));
CREATE POLICY writes ON sluice.tokens FOR ALL USING ((SELECT sluice.may('sluice.administers', ''))) WITH CHECK ((SELECT sluice.may('sluice.administers', '')));
