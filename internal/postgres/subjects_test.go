package postgres_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
	"github.com/sluicehq/sluice/internal/testpg"
)

func user(id string) registry.Who { return registry.Who{Dimension: "user", ID: id} }

var limits = []ruledoc.Limit{{Limit: 500, Window: ruledoc.Duration(time.Hour)}}

func TestRecord_HasEverythingAboutASubject(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	s := db.As(root)
	who := user("u_42")
	if got := must(db.Record(t.Context(), who))(t); got.Found {
		t.Errorf("nothing is on record, got %+v", got)
	}
	must(s.PutSubject(t.Context(), registry.Subject{Who: who, Tier: "pro"}, by))(t)
	older := must(s.PutOverride(t.Context(), registry.Override{Namespace: "default", Who: who, Rule: "search", Limits: limits, Reason: "asked"}, by))(t)
	newer := must(s.PutOverride(t.Context(), registry.Override{
		Namespace: "default", Who: who, Rule: "search", Limits: limits, ValidFrom: noon, ValidUntil: noon.AddDate(10, 0, 0),
	}, by))(t)
	must(s.PutOverride(t.Context(), registry.Override{Namespace: "default", Who: who, Rule: "x", Limits: limits, ValidUntil: noon.AddDate(-1, 0, 0)}, by))(t)
	must(s.PutBlock(t.Context(), registry.Block{Who: who, Reason: "abuse", Until: noon.AddDate(10, 0, 0)}, by))(t)
	must(s.PutExemption(t.Context(), registry.Exemption{Who: who, Reason: "ours"}, by))(t)

	got := must(db.Record(t.Context(), who))(t)
	if !got.Found || got.Tier != "pro" || !got.Exempt || got.Blocked == nil || got.Blocked.Reason != "abuse" || !got.Blocked.Until.Equal(noon.AddDate(10, 0, 0)) || got.Key != nil {
		t.Errorf("record %+v", got)
	}
	want := []registry.Override{newer.Body, older.Body}
	if asJSON(t, got.Overrides) != asJSON(t, want) || older.Body.Author != "ann" {
		t.Errorf("overrides %s, want the newer first and none that has ended: %s", asJSON(t, got.Overrides), asJSON(t, want))
	}

	must(s.PutBlock(t.Context(), registry.Block{Who: who, Reason: "abuse", Until: noon.AddDate(-1, 0, 0)}, by))(t)
	if got := must(db.Record(t.Context(), who))(t); got.Blocked != nil {
		t.Errorf("a block that has ended is on record: %+v", got.Blocked)
	}
}

// noon is a while ago, and ten years after it a while to come.
var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func TestRecords_AnswerInTheOrderAsked(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	s := db.As(root)
	for _, id := range []string{"a", "b"} {
		must(s.PutSubject(t.Context(), registry.Subject{Who: user(id), Tier: "tier of " + id}, by))(t)
	}
	whos := []registry.Who{user("b"), user("unknown"), user("with\x00NUL"), user("\xff"), user("a"), {Dimension: "tenant", ID: "a"}, user("b")}
	got := must(db.Records(t.Context(), whos))(t)
	want := []string{"tier of b", "", "", "", "tier of a", "", "tier of b"}
	for i, r := range got {
		if r.Tier != want[i] || r.Found != (want[i] != "") {
			t.Errorf("%q: %+v, want tier %q", whos[i], r, want[i])
		}
	}
	if got := must(db.Records(t.Context(), nil))(t); len(got) != 0 {
		t.Errorf("nobody asked for: %+v", got)
	}
}

// The plan is made once, when tables may be empty, and kept while they grow to millions.
func TestRecords_AreFoundByIndexInEveryTable(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{"new tables": "SELECT 1", "tables known to be empty": "VACUUM ANALYZE"} {
		d := testpg.New(t)
		d.Exec(t, testpg.Superuser, before)
		plan := planOfRecords(t, session(t, d, testpg.App))
		if strings.Count(plan, "Index Cond:") != 5 || strings.Contains(plan, "Join Filter") || strings.Contains(plan, "Seq Scan") {
			t.Errorf("%s: the plan does not look one subject up in five indexes:\n%s", name, plan)
		}
	}
}

func planOfRecords(t *testing.T, conn *pgx.Conn) string {
	t.Helper()
	tx := must(conn.Begin(t.Context()))(t)
	sql := func(name string) string { return string(must(os.ReadFile("queries/" + name))(t)) }
	for _, c := range []struct {
		sql  string
		args []any
	}{
		{sql("scope.sql"), []any{`["*"]`, "[]", "[]"}},
		{sql("lookup_scope.sql"), nil},
		{"PREPARE records AS " + sql("records.sql"), []any{pgx.QueryExecModeSimpleProtocol}},
	} {
		if _, err := tx.Exec(t.Context(), c.sql, c.args...); err != nil {
			t.Fatalf("%s: %v", c.sql, err)
		}
	}
	rows := must(tx.Query(t.Context(), "EXPLAIN EXECUTE records (ARRAY['user'], ARRAY['u'])"))(t)
	return strings.Join(must(pgx.CollectRows(rows, pgx.RowTo[string]))(t), "\n")
}

func TestRecord_LeavesOutAloneWhatDirectSQLSpoilt(t *testing.T) {
	t.Parallel()
	db, d := open(t)
	d.Exec(t, testpg.Superuser, `INSERT INTO sluice.overrides (namespace, dimension, subject, rule, limits) VALUES
		('default', 'user', 'u', 'good', '[{"limit": 5, "window": "1m"}]'),
		('default', 'user', 'u', 'bad', '[{"limit": 9223372036854775808, "window": "1m"}]'),
		('default', 'user', 'u', 'worse', '[{"limit": "many"}]')`)
	got := must(db.Record(t.Context(), user("u")))(t)
	if len(got.Overrides) != 1 || got.Overrides[0].Rule != "good" {
		t.Errorf("overrides %+v, want the good one", got.Overrides)
	}
	listed := must(db.As(root).Overrides(t.Context(), registry.OverrideFilter{}, registry.Page{}))(t)
	if len(listed.Items) != 3 || listed.Items[1].Body.Limits != nil {
		t.Errorf("listed %s, want all three, the bad ones without limits", asJSON(t, listed))
	}
}

func TestPutSubject_KeepsSinceWhenATierIsTheSame(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	s := db.As(root)
	first := must(s.PutSubject(t.Context(), registry.Subject{Who: user("u"), Tier: "pro"}, by))(t)
	again := must(s.PutSubject(t.Context(), registry.Subject{Who: user("u"), Tier: "pro"}, by))(t)
	other := must(s.PutSubject(t.Context(), registry.Subject{Who: user("u"), Tier: "free"}, by))(t)
	told := must(s.PutSubject(t.Context(), registry.Subject{Who: user("u"), Tier: "free", TierSince: noon}, by))(t)
	if first.Body.TierSince.IsZero() || !again.Body.TierSince.Equal(first.Body.TierSince) || !other.Body.TierSince.After(first.Body.TierSince) ||
		!told.Body.TierSince.Equal(noon) {
		t.Errorf("since %v, %v, %v, %v", first.Body.TierSince, again.Body.TierSince, other.Body.TierSince, told.Body.TierSince)
	}
	if first.Version == again.Version || again.Version == other.Version {
		t.Errorf("versions %d, %d, %d, want each another", first.Version, again.Version, other.Version)
	}
	if err := s.DeleteSubject(t.Context(), user("u"), registry.Edit{Actor: "ann", IfVersion: told.Version}); err != nil {
		t.Error(err)
	}
	_, err := s.Subject(t.Context(), user("u"))
	wantErr(t, "Subject after DeleteSubject", err, registry.ErrNotFound)
}

func TestOverrides_AreChosenByFilterAndChangedById(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	s := db.As(root)
	must(s.CreateNamespace(t.Context(), "shop", by))(t)
	for _, o := range []registry.Override{
		{Namespace: "default", Who: user("a"), Rule: "r1", Limits: limits},
		{Namespace: "default", Who: user("b"), Rule: "r1", Limits: limits},
		{Namespace: "shop", Who: user("a"), Rule: "r2", Limits: limits},
	} {
		must(s.PutOverride(t.Context(), o, by))(t)
	}
	for want, f := range map[int]registry.OverrideFilter{
		3: {}, 1: {Namespace: "shop"}, 2: {Who: user("a")}, 0: {Namespace: "shop", Rule: "r1"},
	} {
		if got := must(s.Overrides(t.Context(), f, registry.Page{}))(t); len(got.Items) != want {
			t.Errorf("%+v: %d overrides, want %d", f, len(got.Items), want)
		}
	}
	listed := must(s.Overrides(t.Context(), registry.OverrideFilter{Who: user("b")}, registry.Page{}))(t)
	o := listed.Items[0].Body
	o.Reason, o.Who, o.Namespace = "more", user("somebody else"), "shop"
	changed := must(s.PutOverride(t.Context(), o, registry.Edit{Actor: "bob", IfVersion: listed.Items[0].Version}))(t)
	if changed.Body.Reason != "more" || changed.Body.Who != user("b") || changed.Body.Namespace != "default" || changed.UpdatedBy != "bob" {
		t.Errorf("changed to %+v, want the same subject and namespace with another reason", changed)
	}
	if err := s.DeleteOverride(t.Context(), o.ID, by); err != nil {
		t.Error(err)
	}
	wantErr(t, "delete again", s.DeleteOverride(t.Context(), o.ID, by), registry.ErrNotFound)
	_, err := s.Override(t.Context(), "no number")
	wantErr(t, "Override by nonsense", err, registry.ErrInvalid)
}

// generate gives n subjects.
func generate(n int, tier string) func() (registry.Subject, bool, error) {
	i := 0
	return func() (registry.Subject, bool, error) {
		i++
		return registry.Subject{Who: user(fmt.Sprintf("u_%d", i)), Tier: tier}, i <= n, nil
	}
}

func TestImportSubjects_IsOneChangeOfAllOrNone(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	s := db.As(root)
	must(s.PutSubject(t.Context(), registry.Subject{Who: user("u_7"), Tier: "free"}, by))(t)
	if n := must(s.ImportSubjects(t.Context(), generate(10_000, "pro"), by))(t); n != 10_000 {
		t.Errorf("imported %d, want 10,000", n)
	}
	if got := must(db.Record(t.Context(), user("u_7")))(t); got.Tier != "pro" {
		t.Errorf("tier %q, want that of the import", got.Tier)
	}
	history := must(s.History(t.Context(), registry.HistoryFilter{}, registry.Page{}))(t)
	if len(history.Items) != 2 || history.Items[0].Name != "import" || history.Items[0].Revision != 2 {
		t.Errorf("history %s, want one change for the import", asJSON(t, history.Items))
	}

	own := errors.New("the file ends in the middle of a line")
	for what, c := range map[string]struct {
		tenth registry.Subject
		err   error
		want  error
	}{
		"an error of the giver": {registry.Subject{}, own, own},
		"a subject of no kind":  {registry.Subject{Who: registry.Who{Dimension: "ip", ID: "x"}}, nil, registry.ErrInvalid},
		"a subject twice":       {registry.Subject{Who: user("u_1")}, nil, registry.ErrInvalid},
		"a subject with NUL":    {registry.Subject{Who: user("\x00")}, nil, registry.ErrInvalid},
	} {
		i, give := 0, generate(20, "other")
		_, err := s.ImportSubjects(t.Context(), func() (registry.Subject, bool, error) {
			if i++; i == 10 {
				return c.tenth, true, c.err
			}
			return give()
		}, by)
		wantErr(t, what, err, c.want)
	}
	edit := by
	edit.DryRun = true
	must(s.ImportSubjects(t.Context(), generate(20, "other"), edit))(t)
	if got := must(db.Record(t.Context(), user("u_7")))(t); got.Tier != "pro" {
		t.Errorf("tier %q after imports that failed, want pro", got.Tier)
	}
	if n := must(s.ImportSubjects(t.Context(), generate(0, ""), by))(t); n != 0 || must(db.Revision(t.Context()))(t) != 2 {
		t.Error("an empty import is a change")
	}
}

func TestImportSubjects_DoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	db, d := open(t)
	other := connect(t, d.URL())
	give := generate(1000, "pro")
	i := 0
	n, err := db.As(root).ImportSubjects(t.Context(), func() (registry.Subject, bool, error) {
		if i++; i == 500 {
			if _, err := other.As(root).PutRule(t.Context(), "default", rule("meanwhile", 1), by); err != nil {
				return registry.Subject{}, false, err
			}
		}
		return give()
	}, by)
	if err != nil || n != 1000 {
		t.Errorf("imported %d (%v), want 1,000 with a rule written meanwhile", n, err)
	}
}
