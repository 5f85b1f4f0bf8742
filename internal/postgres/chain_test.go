package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/pressly/goose/v3"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/postgres"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
	"github.com/sluicehq/sluice/internal/testpg"
)

// verified checks the history, which has to be as it was written.
func verified(t *testing.T, db *postgres.DB, noted *postgres.Point) postgres.Verified {
	t.Helper()
	return must(db.VerifyHistory(t.Context(), postgres.VerifyOptions{Noted: noted}))(t)
}

// wantFault checks the history, which has to show a fault at the place, in these words.
func wantFault(t *testing.T, what string, db *postgres.DB, noted *postgres.Point, revision sluice.Revision, seq int64, words string) {
	t.Helper()
	_, err := db.VerifyHistory(t.Context(), postgres.VerifyOptions{Noted: noted})
	var found *postgres.HistoryError
	if !errors.As(err, &found) || found.Revision != revision || found.Seq != seq || !strings.Contains(err.Error(), words) {
		t.Errorf("%s: %+v (%v), want it found at change %d of revision %d, and %q", what, found, err, seq, revision, words)
	}
}

// chained is furnished and has two revisions more, of which the last, 14, has three changes.
func chained(t *testing.T) (*postgres.DB, *testpg.Database) {
	t.Helper()
	db, d := furnished(t)
	must(db.As(root).PutTier(t.Context(), registry.Tier{Name: "max"}, by))(t)
	must(db.As(root).ApplyRules(t.Context(), "shop", []ruledoc.Rule{rule("a", 1), rule("b", 1), rule("r", 2)}, true, by))(t)
	return db, d
}

func TestVerifyHistory_FollowsTheChangesOfEverybody(t *testing.T) {
	t.Parallel()
	db, d := open(t)
	if got := verified(t, db, &postgres.Point{}); got != (postgres.Verified{}) {
		t.Errorf("without a change: %+v, want nothing", got)
	}
	must(db.As(root).CreateNamespace(t.Context(), "shop", by))(t)
	shop := db.As(actor(registry.Admin, "shop"))
	must(shop.PutRule(t.Context(), "shop", rule("r", 1), registry.Edit{Actor: "bob"}))(t)
	early := verified(t, db, nil)
	must(db.As(actor(registry.Operator, "*")).PutBlock(t.Context(), registry.Block{Who: user("ü \"\\ \u2028 😀")}, registry.Edit{Reason: "\t\n¿"}))(t)
	must(shop.ApplyRules(t.Context(), "shop", []ruledoc.Rule{rule("a", 1), rule("b", 1)}, true, by))(t)
	must(db.As(root).ImportSubjects(t.Context(), generate(5, "pro"), by))(t)
	d.Exec(t, testpg.App, "UPDATE sluice.revision SET value = value + 2") // as docs/database.md advises after changes by SQL
	must(shop.ApplyRules(t.Context(), "shop", nil, true, by))(t)
	got := verified(t, db, &early.Head)
	if got.Changes != 9 || got.Unused != 2 || got.Head.Revision != 8 {
		t.Errorf("got %+v, want 9 changes up to revision 8, of which 2 are unused", got)
	}
	if again := verified(t, db, &got.Head); again != got {
		t.Errorf("the second time it is %+v, the first %+v", again, got)
	}
	for _, role := range []string{testpg.Owner, testpg.Superuser} {
		if by := verified(t, connect(t, d.As(role)), &early.Head); by != got {
			t.Errorf("as %s: %+v, want %+v", role, by, got)
		}
	}
}

func TestVerifyHistory_GoesOnWhileOthersWrite(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	many := make([]ruledoc.Rule, 2500)
	for i := range many {
		many[i] = rule(fmt.Sprint("r", i), 1)
	}
	must(db.As(root).ApplyRules(t.Context(), "default", many, false, by))(t)
	var writers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for i := range 2 {
		writers.Go(func() {
			for n := int64(2); ctx.Err() == nil; n++ {
				if _, err := db.As(root).PutRule(t.Context(), "default", rule(fmt.Sprint("r", i), n), by); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var noted *postgres.Point
	reached := 0
	for range 10 {
		got := must(db.VerifyHistory(t.Context(), postgres.VerifyOptions{Noted: noted, Progress: func(at, last sluice.Revision) {
			if reached++; at < 1 || at > last {
				t.Errorf("told of revision %d of %d", at, last)
			}
		}}))(t)
		noted = &got.Head
	}
	cancel()
	writers.Wait()
	if reached < 20 {
		t.Errorf("told %d times how far it is, want it twice each time", reached)
	}
	if got := verified(t, db, noted); got.Changes != 2500+int64(got.Head.Revision)-1 {
		t.Errorf("%d changes up to revision %d, want 2500 of the first and one of each other", got.Changes, got.Head.Revision)
	}
}

func TestVerifyHistory_FindsWhatWasDoneToIt(t *testing.T) {
	t.Parallel()
	const putIn = `ALTER TABLE sluice.changes DISABLE TRIGGER USER;
		INSERT INTO sluice.changes (revision, seq, actor, kind, name, hash) VALUES `
	for what, c := range map[string]struct {
		sql      string
		revision sluice.Revision
		seq      int64
		words    string
	}{
		"an actor altered":      {"UPDATE sluice.changes SET actor = 'mallory' WHERE revision = 5", 5, 0, "from change 0 of revision 4: it was altered"},
		"a time altered":        {"UPDATE sluice.changes SET at = at + '1 microsecond' WHERE revision = 14 AND seq = 1", 14, 1, "altered"},
		"a time that is none":   {"UPDATE sluice.changes SET at = 'infinity' WHERE revision = 5", 5, 0, "altered"},
		"a time too far":        {"UPDATE sluice.changes SET at = '294276-12-31' WHERE revision = 5", 5, 0, "altered"},
		"a body altered":        {`UPDATE sluice.changes SET after = after || '{"x": 1}' WHERE revision = 2`, 2, 0, "altered"},
		"NULL made null":        {"UPDATE sluice.changes SET before = 'null' WHERE revision = 1", 1, 0, "from the beginning"},
		"words moved":           {"UPDATE sluice.changes SET actor = actor || 'a', reason = substr(reason, 2) WHERE revision = 3", 3, 0, "altered"},
		"text made NULL":        {"ALTER TABLE sluice.changes ALTER reason DROP NOT NULL; UPDATE sluice.changes SET reason = NULL WHERE revision = 3", 3, 0, "altered"},
		"a hash altered":        {"UPDATE sluice.changes SET hash = sha256('') WHERE revision = 3", 3, 0, "altered"},
		"a hash taken away":     {"ALTER TABLE sluice.changes ALTER hash DROP NOT NULL; UPDATE sluice.changes SET hash = NULL WHERE revision = 3", 3, 0, "altered"},
		"a revision removed":    {"DELETE FROM sluice.changes WHERE revision = 6", 7, 0, "from change 0 of revision 5: it was altered or put in, or what stood between was removed"},
		"the first removed":     {"DELETE FROM sluice.changes WHERE revision = 1", 2, 0, "removed"},
		"one of three removed":  {"DELETE FROM sluice.changes WHERE revision = 14 AND seq = 1", 14, 1, "change 1 of revision 14 is missing"},
		"first of three":        {"DELETE FROM sluice.changes WHERE revision = 14 AND seq = 0", 14, 0, "is missing: in its place is change 1"},
		"last of three":         {"DELETE FROM sluice.changes WHERE revision = 14 AND seq = 2", 14, 1, "cut off"},
		"two swapped":           {"UPDATE sluice.changes SET revision = 99 WHERE revision = 8; UPDATE sluice.changes SET revision = 8 WHERE revision = 9; UPDATE sluice.changes SET revision = 9 WHERE revision = 99", 8, 0, "altered or put in"},
		"one put in":            {putIn + "(6, 1, 'x', 'tier', 'x', sha256('x'))", 6, 1, "put in"},
		"one put before all":    {putIn + "(-9223372036854775808, -2147483648, 'x', 'tier', 'x', sha256('x'))", -9223372036854775808, 0, "missing"},
		"the end cut off":       {"DELETE FROM sluice.changes WHERE revision > 12", 12, 0, "it ends with change 0 of revision 12, and the last one written was of revision 14: the end was cut off"},
		"everything cut off":    {"DELETE FROM sluice.changes", 0, 0, "it ends with the beginning"},
		"an end put in":         {putIn + "(15, 0, 'x', 'tier', 'x', '\\x" + strings.Repeat("00", 32) + "'); UPDATE sluice.changes c SET hash = sha256(r.head || sluice.hashed(c)) FROM sluice.revision r WHERE c.revision = 15", 15, 0, "the end was put in"},
		"the head altered":      {"UPDATE sluice.revision SET head = sha256('')", 14, 2, "sluice.revision was altered"},
		"the revision set back": {"UPDATE sluice.revision SET value = 3", 14, 2, "the revision in force is 3"},
		"the revision removed":  {"DELETE FROM sluice.revision", 0, 0, "no row"},
		"rows hidden":           {"DROP POLICY reads ON sluice.changes; CREATE POLICY reads ON sluice.changes FOR SELECT USING (revision <> 4)", 5, 0, "removed"},
	} {
		db, d := chained(t)
		verified(t, db, nil)
		d.Exec(t, testpg.Superuser, c.sql)
		wantFault(t, what, db, nil, c.revision, c.seq, c.words)
	}
}

// rewrite chains all changes anew, as one who knows how and may everything would.
const rewrite = `
	DO $$
	DECLARE
		c sluice.changes;
		previous bytea := decode(repeat('00', 32), 'hex');
		last bigint := 0;
	BEGIN
		FOR c IN SELECT * FROM sluice.changes ORDER BY revision, seq LOOP
			previous := sha256(previous || sluice.hashed(c));
			last := c.revision;
			UPDATE sluice.changes SET hash = previous WHERE revision = c.revision AND seq = c.seq;
		END LOOP;
		UPDATE sluice.revision SET head = previous, head_revision = last;
	END
	$$`

func TestVerifyHistory_FindsAChainWrittenAnewByWhatWasNoted(t *testing.T) {
	t.Parallel()
	db, d := chained(t)
	noted := verified(t, db, nil).Head
	must(db.As(root).PutTier(t.Context(), registry.Tier{Name: "new"}, by))(t)
	d.Exec(t, testpg.Superuser, rewrite)
	later := verified(t, db, &noted).Head // what is written as it was is the same

	d.Exec(t, testpg.Superuser, "UPDATE sluice.changes SET actor = 'mallory' WHERE revision = 15;"+rewrite)
	verified(t, db, &noted) // nothing up to there was altered
	wantFault(t, "the last one altered", db, &later, 15, 0, "another hash than the noted one")
	d.Exec(t, testpg.Superuser, "UPDATE sluice.changes SET actor = 'mallory' WHERE revision = 3;"+rewrite)
	verified(t, db, nil) // it is right in itself
	wantFault(t, "one altered", db, &noted, 14, 2, "another hash than the noted one")
	d.Exec(t, testpg.Superuser, "DELETE FROM sluice.changes WHERE revision = 14;"+rewrite)
	if got := verified(t, db, nil); got.Unused != 1 {
		t.Errorf("%+v, want the missing revision counted", got)
	}
	wantFault(t, "the noted one removed", db, &noted, 14, 0, "the noted revision 14 has no change: after change 0 of revision 13 comes revision 15")
	d.Exec(t, testpg.Superuser, "DELETE FROM sluice.changes WHERE revision > 7;"+rewrite)
	wantFault(t, "the end cut off", db, &noted, 7, 0, "before the noted revision 14")
}

func TestMigrate_ChainsTheHistoryAndGivesEveryRowAVersion(t *testing.T) {
	t.Parallel()
	d := testpg.Start(t, testpg.Options{Empty: true}).Database(t)
	d.Exec(t, testpg.Owner, "CREATE SCHEMA sluice")
	conn, err := sql.Open("pgx", d.OwnerURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	before, err := goose.NewProvider(goose.DialectPostgres, conn, os.DirFS("migrations"), goose.WithTableName("sluice.schema_version"))
	if err != nil {
		t.Fatal(err)
	}
	must(before.UpTo(t.Context(), 2))(t)
	db := connect(t, d.URL())
	s := db.As(root)
	_, err = db.VerifyHistory(t.Context(), postgres.VerifyOptions{})
	if wantErr(t, "VerifyHistory before the migration", err, registry.ErrUnavailable); !strings.Contains(err.Error(), "run sluice migrate") {
		t.Errorf("%v, want it to say what to do", err)
	}
	must(s.ApplyRules(t.Context(), "default", []ruledoc.Rule{rule("a", 1), rule("b", 1)}, true, by))(t)
	must(s.PutBlock(t.Context(), registry.Block{Who: user("ü")}, by))(t)
	if err := s.DeleteBlock(t.Context(), user("ü"), registry.Edit{}); err != nil {
		t.Fatal(err)
	}
	d.Exec(t, testpg.Superuser, "INSERT INTO sluice.subjects (dimension, id) VALUES ('user', 'written by hand')")
	if err := postgres.Migrate(t.Context(), d.OwnerURL(), nil); err != nil {
		t.Fatal(err)
	}
	if got := must(s.Subject(t.Context(), user("written by hand")))(t).Version; got != 1 {
		t.Errorf("a row written by hand has version %d after the migration, want 1", got)
	}
	then := verified(t, db, nil)
	if then.Changes != 4 || then.Head.Revision != 3 {
		t.Errorf("after the migration: %+v, want 4 changes up to revision 3", then)
	}
	must(s.PutRule(t.Context(), "default", rule("a", 2), by))(t)
	if got := verified(t, db, &then.Head); got.Changes != 5 {
		t.Errorf("after another change: %+v, want 5", got)
	}
	if n := countIn(t, session(t, d, testpg.Owner), "", "SELECT count(*) FROM sluice.changes"); n != 0 {
		t.Errorf("the owner sees %d changes without naming a namespace, want 0: row-level security is forced again", n)
	}
	d.Exec(t, testpg.Superuser, "DELETE FROM sluice.changes WHERE revision = 2")
	wantFault(t, "an old one removed", db, nil, 3, 0, "removed")
}

func TestApplication_CannotSpoilTheChain(t *testing.T) {
	t.Parallel()
	db, d := chained(t)
	noted := verified(t, db, nil).Head
	conn := session(t, d, testpg.App)
	for _, sql := range []string{
		"UPDATE sluice.changes SET hash = sha256('')", "DELETE FROM sluice.changes", "TRUNCATE sluice.changes",
		"UPDATE sluice.revision SET head = sha256('')", "UPDATE sluice.revision SET head_revision = 0", "INSERT INTO sluice.revision (value) VALUES (1)",
		"ALTER TABLE sluice.changes DISABLE TRIGGER USER", "SET session_replication_role = replica", "DROP FUNCTION sluice.hashed",
		`CREATE TEMPORARY TABLE own (LIKE sluice.changes);
		 CREATE TRIGGER own AFTER INSERT ON own REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION sluice.move_head()`,
	} {
		wantDenied(t, conn, `["*"]`, testpg.App, sql)
	}
	const add = "INSERT INTO sluice.changes (revision, seq, actor, kind, name) "
	for what, sql := range map[string]string{
		"to a closed revision":       add + "VALUES (14, 3, 'x', 'tier', 'x')",
		"to an old one":              add + "VALUES (6, 1, 'x', 'tier', 'x')",
		"ahead":                      add + "VALUES (99, 0, 'x', 'tier', 'x')",
		"with a gap":                 "UPDATE sluice.revision SET value = 15; " + add + "VALUES (15, 0, 'x', 'tier', 'x'), (15, 2, 'x', 'tier', 'x')",
		"not from 0":                 "UPDATE sluice.revision SET value = 15; " + add + "VALUES (15, 1, 'x', 'tier', 'x')",
		"in two statements":          "UPDATE sluice.revision SET value = 15; " + add + "VALUES (15, 0, 'x', 'tier', 'x'); " + add + "VALUES (15, 1, 'x', 'tier', 'x')",
		"after the revision sank":    "UPDATE sluice.revision SET value = 3; " + add + "VALUES (3, 1, 'x', 'tier', 'x')",
		"at a time that is none":     "UPDATE sluice.revision SET value = 15; INSERT INTO sluice.changes VALUES (15, 0, 'infinity', 'x', '', '', '', 'tier', 'x')",
		"what it could not see then": "UPDATE sluice.revision SET value = 15; SET LOCAL sluice.reads = '[]'; " + add + "VALUES (15, 0, 'x', 'tier', 'x'), (15, 1, 'x', 'tier', 'x')",
	} {
		tx := scoped(t, conn, `["*"]`)
		_, err := tx.Exec(t.Context(), sql)
		var answer *pgconn.PgError
		if !errors.As(err, &answer) || answer.Code != "55000" && answer.Code != "0A000" {
			t.Errorf("added %s: %v, want it refused", what, err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	tx := scoped(t, conn, `["*"]`)
	made := strings.Replace(nextChange, "name)", "name, hash)", 1) + "SELECT value, 0, 'x', 'shop', 'rule', 'x', sha256('made up') FROM next RETURNING hash = sha256('made up')"
	var kept bool
	if err := tx.QueryRow(t.Context(), made).Scan(&kept); err != nil || kept {
		t.Errorf("the hash that was given is kept: %v (%v)", kept, err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := verified(t, db, &noted); got.Head.Revision != 15 {
		t.Errorf("the chain ends at revision %d, want 15", got.Head.Revision)
	}
}
