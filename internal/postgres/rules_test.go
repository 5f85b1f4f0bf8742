package postgres_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

func TestPutRule_WritesEntryHistoryAndRevisionTogether(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	s := db.As(root)
	first := must(s.PutRule(t.Context(), "default", rule("search", 10), by))(t)
	second := must(s.PutRule(t.Context(), "default", rule("search", 20), by))(t)
	if first.Version != 1 || second.Version != 2 || second.UpdatedBy != "ann" || second.Body.Limits[0].Limit != 20 || second.Body.Namespace != "default" {
		t.Errorf("versions %d and %d, want 1 and 2; the second is %+v", first.Version, second.Version, second)
	}
	if got := must(db.Revision(t.Context()))(t); got != 2 {
		t.Errorf("revision %d, want 2", got)
	}
	history := must(s.History(t.Context(), registry.HistoryFilter{}, registry.Page{}))(t)
	if len(history.Items) != 2 {
		t.Fatalf("history %+v, want two changes", history.Items)
	}
	c := history.Items[0]
	if c.Revision != 2 || c.Actor != "ann" || c.Reason != "a test" || c.RequestID != "r-1" || c.Namespace != "default" || c.Kind != registry.KindRule ||
		c.Name != "search" || limitIn(t, c.Before) != 10 || limitIn(t, c.After) != 20 {
		t.Errorf("the newest change is %+v", c)
	}
	if history.Items[1].Before != nil {
		t.Errorf("before the first change there was %s, want nothing", history.Items[1].Before)
	}
}

// limitIn reads the first limit of a rule in the history.
func limitIn(t *testing.T, body json.RawMessage) int64 {
	t.Helper()
	var r ruledoc.Rule
	if err := json.Unmarshal(body, &r); err != nil || len(r.Limits) == 0 {
		t.Fatalf("%s is no rule: %v", body, err)
	}
	return r.Limits[0].Limit
}

func TestPutRule_IsRefusedForAnotherVersionThanTheOneThatIsThere(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	s := db.As(root)
	edit := by
	edit.IfVersion = 7
	_, err := s.PutRule(t.Context(), "default", rule("search", 10), edit)
	wantErr(t, "put what is gone", err, registry.ErrConflict)
	edit.IfVersion = -1
	first := must(s.PutRule(t.Context(), "default", rule("search", 10), edit))(t)
	_, err = s.PutRule(t.Context(), "default", rule("search", 11), edit)
	wantErr(t, "create what is there", err, registry.ErrExists)
	edit.IfVersion = first.Version
	must(s.PutRule(t.Context(), "default", rule("search", 12), edit))(t)
	_, err = s.PutRule(t.Context(), "default", rule("search", 13), edit)
	wantErr(t, "put with the version before", err, registry.ErrConflict)
	wantErr(t, "delete with the version before", s.DeleteRule(t.Context(), "default", "search", edit), registry.ErrConflict)
	if got := must(s.Rule(t.Context(), "default", "search"))(t); got.Body.Limits[0].Limit != 12 {
		t.Errorf("limit %d, want 12", got.Body.Limits[0].Limit)
	}
	if got := must(db.Revision(t.Context()))(t); got != 2 {
		t.Errorf("revision %d after two changes, want 2: what was refused uses none up", got)
	}
}

func TestRules_ThatAreNotThereAreNotFound(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	s := db.As(root)
	_, err := s.Rule(t.Context(), "default", "none")
	wantErr(t, "Rule", err, registry.ErrNotFound)
	wantErr(t, "DeleteRule", s.DeleteRule(t.Context(), "default", "none", by), registry.ErrNotFound)
	_, err = s.PutRule(t.Context(), "nowhere", rule("a", 1), by)
	wantErr(t, "PutRule in no namespace", err, registry.ErrNotFound)
	_, err = s.PutRule(t.Context(), "default", rule("a\x00b", 1), by)
	wantErr(t, "PutRule with NUL", err, registry.ErrInvalid)
	_, err = s.RollbackRules(t.Context(), "default", 5, by)
	wantErr(t, "RollbackRules to the future", err, registry.ErrNotFound)
}

func TestRules_AreListedInPages(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	s := db.As(root)
	want := []string{"a", "b", "c", "d", "e"}
	for _, name := range want {
		must(s.PutRule(t.Context(), "default", rule(name, 1), by))(t)
	}
	var got []string
	page := registry.Page{Limit: 2}
	for pages := 0; pages == 0 || page.After != ""; pages++ {
		listed := must(s.Rules(t.Context(), "default", page))(t)
		for _, r := range listed.Items {
			got = append(got, r.Name)
		}
		if page.After = listed.Next; pages > 3 {
			t.Fatal("the pages do not end")
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
	_, err := s.Rules(t.Context(), "default", registry.Page{After: "nonsense"})
	wantErr(t, "a cursor of another make", err, registry.ErrInvalid)
}

func TestPutRule_DryRunChangesNothing(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	edit := by
	edit.DryRun = true
	got := must(db.As(root).PutRule(t.Context(), "default", rule("search", 10), edit))(t)
	if got.Version != 1 {
		t.Errorf("version %d, want 1, which it would have", got.Version)
	}
	_, err := db.As(root).Rule(t.Context(), "default", "search")
	wantErr(t, "Rule after a trial", err, registry.ErrNotFound)
	if got := must(db.Revision(t.Context()))(t); got != 0 {
		t.Errorf("revision %d, want 0", got)
	}
}

func TestApplyRules_IsOneRevisionAndTouchesOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	s := db.As(root)
	must(s.ApplyRules(t.Context(), "default", []ruledoc.Rule{rule("a", 1), rule("b", 1), rule("c", 1)}, false, by))(t)
	got := must(s.ApplyRules(t.Context(), "default", []ruledoc.Rule{rule("a", 1), rule("b", 2), rule("d", 1)}, true, by))(t)
	want := registry.Applied{Revision: 2, Created: []string{"d"}, Updated: []string{"b"}, Deleted: []string{"c"}, Same: []string{"a"}}
	if asJSON(t, got) != asJSON(t, want) {
		t.Errorf("applied %s, want %s", asJSON(t, got), asJSON(t, want))
	}
	if a := must(s.Rule(t.Context(), "default", "a"))(t); a.Version != 1 {
		t.Errorf("the rule that is the same has version %d, want 1", a.Version)
	}
	again := must(s.ApplyRules(t.Context(), "default", []ruledoc.Rule{rule("a", 1), rule("b", 2), rule("d", 1)}, true, by))(t)
	if again.Revision != 2 || len(again.Same) != 3 {
		t.Errorf("applied again: %+v, want all the same at revision 2", again)
	}
	_, err := s.ApplyRules(t.Context(), "default", []ruledoc.Rule{rule("x", 1), rule("x", 2)}, false, by)
	wantErr(t, "a rule twice", err, registry.ErrInvalid)
}

func TestRollbackRules_IsANewRevisionWithTheRulesOfTheOldOne(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	s := db.As(root)
	must(s.ApplyRules(t.Context(), "default", []ruledoc.Rule{rule("a", 1), rule("b", 1)}, false, by))(t)
	must(s.PutRule(t.Context(), "default", rule("a", 2), by))(t)
	if err := s.DeleteRule(t.Context(), "default", "b", by); err != nil {
		t.Fatal(err)
	}
	must(s.PutRule(t.Context(), "default", rule("c", 1), by))(t)
	got := must(s.RollbackRules(t.Context(), "default", 1, registry.Edit{Actor: "ann"}))(t)
	want := registry.Applied{Revision: 5, Created: []string{"b"}, Updated: []string{"a"}, Deleted: []string{"c"}, Same: []string{}}
	if asJSON(t, got) != asJSON(t, want) {
		t.Errorf("rolled back: %s, want %s", asJSON(t, got), asJSON(t, want))
	}
	listed := must(s.Rules(t.Context(), "default", registry.Page{}))(t)
	if len(listed.Items) != 2 || listed.Items[0].Body.Limits[0].Limit != 1 || listed.Items[1].Name != "b" {
		t.Errorf("the rules are %s", asJSON(t, listed.Items))
	}
	history := must(s.History(t.Context(), registry.HistoryFilter{Kind: registry.KindRule, Name: "a"}, registry.Page{Limit: 1}))(t)
	if history.Items[0].Revision != 5 || history.Items[0].Reason != "rollback to revision 1" || history.Next == "" {
		t.Errorf("the history of a begins with %s", asJSON(t, history))
	}
	empty := must(s.RollbackRules(t.Context(), "default", 0, by))(t)
	if len(empty.Deleted) != 2 {
		t.Errorf("rolled back to the beginning: %s, want both deleted", asJSON(t, empty))
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
