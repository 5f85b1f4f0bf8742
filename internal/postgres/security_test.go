package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluicehq/sluice/internal/postgres"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/testpg"
)

func actor(role registry.Role, namespaces ...string) registry.Actor {
	a := registry.Actor{Name: string(role)}
	for _, n := range namespaces {
		a.Grants = append(a.Grants, registry.Grant{Namespace: n, Role: role})
	}
	return a
}

// furnished has two namespaces, each with a rule and an override, and one of everything that belongs to none.
func furnished(t *testing.T) (*postgres.DB, *testpg.Database) {
	t.Helper()
	db, d := open(t)
	s := db.As(root)
	for _, ns := range []string{"shop", "bank"} {
		must(s.CreateNamespace(t.Context(), ns, by))(t)
		must(s.PutRule(t.Context(), ns, rule("r", 1), by))(t)
		must(s.PutOverride(t.Context(), registry.Override{Namespace: ns, Who: user("u"), Rule: "r", Limits: limits}, by))(t)
	}
	must(s.PutTier(t.Context(), registry.Tier{Name: "pro"}, by))(t)
	must(s.PutSubject(t.Context(), registry.Subject{Who: user("u"), Tier: "pro"}, by))(t)
	must(s.CreateKey(t.Context(), key("k"), by))(t)
	must(s.PutBlock(t.Context(), registry.Block{Who: user("u")}, by))(t)
	must(s.PutExemption(t.Context(), registry.Exemption{Who: user("u")}, by))(t)
	must(s.CreateToken(t.Context(), registry.Token{ID: "t", Name: "t", Hash: hash(1)}, by))(t)
	return db, d
}

func TestScoped_SeesItsNamespacesOnly(t *testing.T) {
	t.Parallel()
	db, _ := furnished(t)
	s := db.As(actor(registry.Admin, "shop"))
	_, err := s.Rule(t.Context(), "bank", "r")
	wantErr(t, "Rule of another namespace", err, registry.ErrNotFound)
	if got := must(s.Rules(t.Context(), "bank", registry.Page{}))(t); len(got.Items) != 0 {
		t.Errorf("rules of another namespace: %+v", got.Items)
	}
	if got := must(s.Namespaces(t.Context()))(t); len(got) != 1 || got[0].Name != "shop" {
		t.Errorf("namespaces %+v, want shop alone", got)
	}
	if got := must(s.Overrides(t.Context(), registry.OverrideFilter{}, registry.Page{}))(t); len(got.Items) != 1 || got.Items[0].Namespace != "shop" {
		t.Errorf("overrides %+v, want those of shop", got.Items)
	}
	history := must(s.History(t.Context(), registry.HistoryFilter{}, registry.Page{}))(t)
	for _, c := range history.Items {
		if c.Namespace != "shop" {
			t.Errorf("the history shows %+v", c)
		}
	}
	if len(history.Items) != 3 {
		t.Errorf("the history has %d changes, want the 3 of shop", len(history.Items))
	}
	if got := must(s.Tiers(t.Context(), registry.Page{}))(t); len(got.Items) != 1 {
		t.Errorf("%d tiers, want 1: every namespace's rules name them", len(got.Items))
	}
	for what, err := range map[string]error{
		"Subject":   errOf(s.Subject(t.Context(), user("u"))),
		"Key":       errOf(s.Key(t.Context(), "k")),
		"Block":     errOf(s.Block(t.Context(), user("u"))),
		"Exemption": errOf(s.Exemption(t.Context(), user("u"))),
		"Token":     errOf(s.Token(t.Context(), "t")),
	} {
		wantErr(t, what+" without a grant for all namespaces", err, registry.ErrNotFound)
	}
	nobody := db.As(registry.Actor{Name: "nobody"})
	if got := must(nobody.Tiers(t.Context(), registry.Page{}))(t); len(got.Items) != 0 {
		t.Errorf("without a grant: %+v", got.Items)
	}
}

func TestScoped_WritesWhatItsRoleMay(t *testing.T) {
	t.Parallel()
	db, _ := furnished(t)
	ctx := t.Context()
	override := must(db.As(root).Overrides(ctx, registry.OverrideFilter{Namespace: "shop"}, registry.Page{}))(t).Items[0].Body
	// Every write, and the actors who may.
	all := []registry.Actor{
		actor(registry.Viewer, "shop"), actor(registry.Operator, "shop"), actor(registry.Admin, "shop"), actor(registry.Admin, "bank"),
		actor(registry.Viewer, "*"), actor(registry.Operator, "*"), actor(registry.Admin, "*"),
	}
	for what, c := range map[string]struct {
		may string // one letter for each of all
		do  func(*postgres.Scoped, registry.Edit) error
	}{
		"PutRule":     {"..y...y", func(s *postgres.Scoped, e registry.Edit) error { return errOf(s.PutRule(ctx, "shop", rule("r", 2), e)) }},
		"new rule":    {"..y...y", func(s *postgres.Scoped, e registry.Edit) error { return errOf(s.PutRule(ctx, "shop", rule("n", 2), e)) }},
		"DeleteRule":  {"..y...y", func(s *postgres.Scoped, e registry.Edit) error { return s.DeleteRule(ctx, "shop", "r", e) }},
		"ApplyRules":  {"..y...y", func(s *postgres.Scoped, e registry.Edit) error { return errOf(s.ApplyRules(ctx, "shop", nil, true, e)) }},
		"Rollback":    {"..y...y", func(s *postgres.Scoped, e registry.Edit) error { return errOf(s.RollbackRules(ctx, "shop", 0, e)) }},
		"PutOverride": {".yy..yy", func(s *postgres.Scoped, e registry.Edit) error { return errOf(s.PutOverride(ctx, override, e)) }},
		"new override": {".yy..yy", func(s *postgres.Scoped, e registry.Edit) error {
			o := override
			o.ID = ""
			return errOf(s.PutOverride(ctx, o, e))
		}},
		"DelOverride": {".yy..yy", func(s *postgres.Scoped, e registry.Edit) error { return s.DeleteOverride(ctx, override.ID, e) }},
		"Namespace":   {"......y", func(s *postgres.Scoped, e registry.Edit) error { return errOf(s.CreateNamespace(ctx, "new", e)) }},
		"PutTier": {"......y", func(s *postgres.Scoped, e registry.Edit) error {
			return errOf(s.PutTier(ctx, registry.Tier{Name: "pro"}, e))
		}},
		"DeleteTier": {"......y", func(s *postgres.Scoped, e registry.Edit) error { return s.DeleteTier(ctx, "pro", e) }},
		"PutSubject": {".....yy", func(s *postgres.Scoped, e registry.Edit) error {
			return errOf(s.PutSubject(ctx, registry.Subject{Who: user("u")}, e))
		}},
		"Import": {".....yy", func(s *postgres.Scoped, e registry.Edit) error {
			return errOf(s.ImportSubjects(ctx, generate(2, ""), e))
		}},
		"PutBlock": {".....yy", func(s *postgres.Scoped, e registry.Edit) error {
			return errOf(s.PutBlock(ctx, registry.Block{Who: user("u")}, e))
		}},
		"DeleteBlock": {".....yy", func(s *postgres.Scoped, e registry.Edit) error { return s.DeleteBlock(ctx, user("u"), e) }},
		"PutExemption": {".....yy", func(s *postgres.Scoped, e registry.Edit) error {
			return errOf(s.PutExemption(ctx, registry.Exemption{Who: user("u")}, e))
		}},
		"CreateKey":   {"......y", func(s *postgres.Scoped, e registry.Edit) error { return errOf(s.CreateKey(ctx, key("new"), e)) }},
		"RevokeKey":   {"......y", func(s *postgres.Scoped, e registry.Edit) error { return errOf(s.RevokeKey(ctx, "k", e)) }},
		"RevokeToken": {"......y", func(s *postgres.Scoped, e registry.Edit) error { return errOf(s.RevokeToken(ctx, "t", e)) }},
	} {
		for i, a := range all {
			err := c.do(db.As(a), registry.Edit{Actor: a.Name, DryRun: true})
			may := c.may[i] == 'y'
			if may != (err == nil) {
				t.Errorf("%s as %+v: error %v, may: %v", what, a.Grants, err, may)
			}
			if !may && !errors.Is(err, registry.ErrForbidden) && !errors.Is(err, registry.ErrNotFound) {
				t.Errorf("%s as %+v: error %v, want it forbidden or not found", what, a.Grants, err)
			}
		}
	}
}

// nextChange begins a statement that adds to the history what its SELECT gives.
const nextChange = "WITH next AS (UPDATE sluice.revision SET value = value + 1 RETURNING value) " +
	"INSERT INTO sluice.changes (revision, seq, actor, namespace, kind, name) "

// The wall itself, without our statements: plain SQL as the application's role.
func TestRowLevelSecurity_HoldsAgainstPlainSQLOfTheApplication(t *testing.T) {
	t.Parallel()
	_, d := furnished(t)
	for _, role := range []string{testpg.App, testpg.Owner} {
		conn := session(t, d, role)
		for _, table := range []string{
			"namespaces", "rules", "overrides", "changes", "tiers", "subjects", "blocks", "exemptions", "api_keys", "tokens",
		} {
			if got := countIn(t, conn, "", "SELECT count(*) FROM sluice."+table); got != 0 {
				t.Errorf("%s sees %d rows of %s without naming a namespace, want 0", role, got, table)
			}
		}
		for _, table := range []string{"rules", "overrides", "namespaces"} {
			if got := countIn(t, conn, `["shop"]`, "SELECT count(*) FROM sluice."+table); got != 1 {
				t.Errorf("%s sees %d rows of %s in shop, want 1", role, got, table)
			}
		}
		for _, sql := range []string{
			"UPDATE sluice.rules SET body = '{}' WHERE namespace = 'bank'",
			"UPDATE sluice.rules SET body = '{}'",
			"DELETE FROM sluice.rules WHERE namespace = 'bank'",
			"DELETE FROM sluice.overrides WHERE namespace = 'bank'",
			"UPDATE sluice.overrides SET rule = 'x' WHERE namespace = 'bank'",
			"DELETE FROM sluice.subjects", "DELETE FROM sluice.blocks", "DELETE FROM sluice.exemptions", "DELETE FROM sluice.tiers",
			"UPDATE sluice.tokens SET revoked_at = NULL", "UPDATE sluice.api_keys SET revoked_at = NULL",
		} {
			if got := countIn(t, conn, `["shop"]`, "WITH done AS ("+sql+" RETURNING 1) SELECT count(*) FROM done"); got != 0 && !strings.HasSuffix(sql, "'{}'") || got > 1 {
				t.Errorf("%s: %q touched %d rows as an admin of shop", role, sql, got)
			}
		}
		for _, sql := range []string{
			"INSERT INTO sluice.rules (namespace, name, body) VALUES ('bank', 'x', '{}')",
			"UPDATE sluice.rules SET namespace = 'bank', name = 'moved'",
			"INSERT INTO sluice.overrides (namespace, dimension, subject, rule, limits) VALUES ('bank', 'user', 'u', 'r', '[]')",
			nextChange + "SELECT value, 0, 'x', 'bank', 'rule', 'x' FROM next",
			nextChange + "SELECT value, 0, 'x', '', 'tier', 'x' FROM next",
			"INSERT INTO sluice.namespaces (name) VALUES ('mine')",
			"INSERT INTO sluice.subjects (dimension, id) VALUES ('user', 'x')",
		} {
			wantDenied(t, conn, `["shop"]`, role, sql)
		}
	}
}

func TestApplication_CannotAlterTablesNorHistory(t *testing.T) {
	t.Parallel()
	_, d := furnished(t)
	conn := session(t, d, testpg.App)
	for _, sql := range []string{
		"CREATE TABLE sluice.mine ()", "CREATE TABLE public.mine ()", "ALTER TABLE sluice.rules DISABLE ROW LEVEL SECURITY", "DROP TABLE sluice.rules",
		"DROP POLICY reads ON sluice.rules", "TRUNCATE sluice.rules", "UPDATE sluice.changes SET actor = 'x'", "DELETE FROM sluice.changes",
		"DELETE FROM sluice.api_keys", "DELETE FROM sluice.tokens", "DELETE FROM sluice.namespaces", "DELETE FROM sluice.revision",
		"INSERT INTO sluice.schema_version (version_id, is_applied) VALUES (99, true)", "CREATE FUNCTION sluice.f() RETURNS int RETURN 1",
		"SET ROLE sluice_owner", "ALTER ROLE sluice_app BYPASSRLS",
	} {
		wantDenied(t, conn, `["*"]`, testpg.App, sql)
	}
}

// scoped begins a transaction with grants as an admin of the namespaces.
func scoped(t *testing.T, conn *pgx.Conn, namespaces string) pgx.Tx {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(t.Context()) })
	for _, setting := range []string{"reads", "operates", "administers"} {
		if _, err := tx.Exec(t.Context(), "SELECT set_config($1, $2, true)", "sluice."+setting, namespaces); err != nil {
			t.Fatal(err)
		}
	}
	return tx
}

func countIn(t *testing.T, conn *pgx.Conn, namespaces, sql string) int {
	t.Helper()
	tx := scoped(t, conn, namespaces)
	defer tx.Rollback(t.Context())
	var n int
	err := tx.QueryRow(t.Context(), sql).Scan(&n)
	var answer *pgconn.PgError
	if errors.As(err, &answer) && answer.Code == "42501" {
		return 0
	}
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func wantDenied(t *testing.T, conn *pgx.Conn, namespaces, role, sql string) {
	t.Helper()
	tx := scoped(t, conn, namespaces)
	defer tx.Rollback(t.Context())
	_, err := tx.Exec(t.Context(), sql)
	var answer *pgconn.PgError
	if !errors.As(err, &answer) || answer.Code != "42501" {
		t.Errorf("%s: %q: %v, want it denied", role, sql, err)
	}
}
