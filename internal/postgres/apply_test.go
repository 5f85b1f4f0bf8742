package postgres_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/postgres"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
	"github.com/sluicehq/sluice/internal/testpg"
)

// versionsIn are the versions of a namespace's rules.
func versionsIn(t *testing.T, s *postgres.Scoped, namespace string) map[string]int64 {
	t.Helper()
	versions := map[string]int64{}
	for _, r := range must(s.Rules(t.Context(), namespace, registry.Page{}))(t).Items {
		versions[r.Name] = r.Version
	}
	return versions
}

func TestApplyRules_IsRefusedWhenARuleItConcernsIsAnother(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	s := db.As(root)
	other := registry.Edit{Actor: "bob"}
	change := func(s *postgres.Scoped, ns, name string) error {
		return errOf(s.PutRule(t.Context(), ns, rule(name, 9), other))
	}
	for name, c := range map[string]struct {
		between func(s *postgres.Scoped, ns string) error
		prune   bool
		want    string // empty: it is done
	}{
		"nothing, prune":       {func(*postgres.Scoped, string) error { return nil }, true, ""},
		"nothing":              {func(*postgres.Scoped, string) error { return nil }, false, ""},
		"changed":              {func(s *postgres.Scoped, ns string) error { return change(s, ns, "a") }, false, `rule "a" was changed by "bob"`},
		"changed, the same":    {func(s *postgres.Scoped, ns string) error { return change(s, ns, "same") }, false, `rule "same" was changed by "bob"`},
		"deleted":              {func(s *postgres.Scoped, ns string) error { return s.DeleteRule(t.Context(), ns, "a", other) }, false, `rule "a" was deleted`},
		"added":                {func(s *postgres.Scoped, ns string) error { return change(s, ns, "new") }, false, `rule "new" was added by "bob"`},
		"other changed":        {func(s *postgres.Scoped, ns string) error { return change(s, ns, "z") }, false, ""},
		"other changed, prune": {func(s *postgres.Scoped, ns string) error { return change(s, ns, "z") }, true, `rule "z" was changed by "bob"`},
		"other deleted":        {func(s *postgres.Scoped, ns string) error { return s.DeleteRule(t.Context(), ns, "z", other) }, false, ""},
		"other deleted, prune": {func(s *postgres.Scoped, ns string) error { return s.DeleteRule(t.Context(), ns, "z", other) }, true, `rule "z" was deleted`},
		"other added":          {func(s *postgres.Scoped, ns string) error { return change(s, ns, "y") }, false, ""},
		"other added, prune":   {func(s *postgres.Scoped, ns string) error { return change(s, ns, "y") }, true, `rule "y" was added by "bob"`},
		"elsewhere, prune":     {func(s *postgres.Scoped, _ string) error { return change(s, "default", "a") }, true, ""},
	} {
		must(s.CreateNamespace(t.Context(), name, by))(t)
		must(s.ApplyRules(t.Context(), name, []ruledoc.Rule{rule("a", 1), rule("same", 1), rule("z", 1)}, false, by))(t)
		edit := by
		edit.IfVersions = versionsIn(t, s, name)
		if err := c.between(s, name); err != nil {
			t.Fatal(err)
		}
		before, revision := versionsIn(t, s, name), must(db.Revision(t.Context()))(t)
		_, err := s.ApplyRules(t.Context(), name, []ruledoc.Rule{rule("a", 2), rule("same", 1), rule("new", 2)}, c.prune, edit)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v, want it done", name, err)
			}
			continue
		}
		wantErr(t, name, err, registry.ErrConflict)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Count(err.Error(), " was ") != 1 {
			t.Errorf("%s: %v, want %q and no other rule", name, err, c.want)
		}
		if after := versionsIn(t, s, name); !maps.Equal(after, before) || must(db.Revision(t.Context()))(t) != revision {
			t.Errorf("%s: something was changed: %v, before %v", name, after, before)
		}
	}
}

func TestApplyRules_GoesByTheVersionsItIsGiven(t *testing.T) {
	t.Parallel()
	db, d := open(t)
	s := db.As(root)
	edit := by
	edit.IfVersions = map[string]int64{}
	must(s.ApplyRules(t.Context(), "default", []ruledoc.Rule{rule("a", 1)}, true, edit))(t)
	_, err := s.ApplyRules(t.Context(), "default", []ruledoc.Rule{rule("a", 2)}, true, edit)
	wantErr(t, "made where there were none", err, registry.ErrConflict)
	must(s.ApplyRules(t.Context(), "default", []ruledoc.Rule{rule("a", 2)}, true, by))(t) // whichever there are

	// A rule that was deleted and made again is another, whatever it says.
	edit.IfVersions = versionsIn(t, s, "default")
	if err := s.DeleteRule(t.Context(), "default", "a", by); err != nil {
		t.Fatal(err)
	}
	must(s.PutRule(t.Context(), "default", rule("a", 2), by))(t)
	edit.DryRun = true
	_, err = s.ApplyRules(t.Context(), "default", []ruledoc.Rule{rule("a", 3)}, false, edit)
	wantErr(t, "a trial", err, registry.ErrConflict)

	// What direct SQL added has version 0, which is one.
	d.Exec(t, testpg.Superuser, `INSERT INTO sluice.rules (namespace, name, body) VALUES ('default', 'sql', '{}')`)
	edit = by
	edit.IfVersions = map[string]int64{"a": versionsIn(t, s, "default")["a"]}
	_, err = s.ApplyRules(t.Context(), "default", []ruledoc.Rule{rule("a", 3)}, true, edit)
	if wantErr(t, "added by direct SQL", err, registry.ErrConflict); err != nil && !strings.Contains(err.Error(), `rule "sql" was added by "direct SQL"`) {
		t.Errorf("added by direct SQL: %v", err)
	}
	edit.IfVersions = versionsIn(t, s, "default")
	if done := must(s.ApplyRules(t.Context(), "default", []ruledoc.Rule{rule("a", 3)}, true, edit))(t); len(done.Deleted) != 1 {
		t.Errorf("done: %s, want the added one deleted", asJSON(t, done))
	}
}

func TestApplyRules_NamesNoMoreRulesThanOneWouldRead(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	edit := by
	edit.IfVersions = map[string]int64{}
	for i := range 30 {
		edit.IfVersions[strings.Repeat("x", i+1)] = 1
	}
	_, err := db.As(root).ApplyRules(t.Context(), "default", nil, true, edit)
	if wantErr(t, "thirty gone", err, registry.ErrConflict); err == nil || strings.Count(err.Error(), " was ") != 20 || !strings.Contains(err.Error(), "and 10 more") {
		t.Errorf("thirty gone: %v, want 20 of them, and how many more", err)
	}
}

func TestRollbackRules_IsRefusedWhenARuleIsAnother(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	s := db.As(root)
	must(s.ApplyRules(t.Context(), "default", []ruledoc.Rule{rule("a", 1)}, false, by))(t)
	must(s.PutRule(t.Context(), "default", rule("a", 2), by))(t)
	edit := by
	edit.IfVersions = versionsIn(t, s, "default")
	must(s.PutRule(t.Context(), "default", rule("b", 1), registry.Edit{Actor: "bob"}))(t)
	_, err := s.RollbackRules(t.Context(), "default", 1, edit)
	if wantErr(t, "a rule was added", err, registry.ErrConflict); err == nil || !strings.Contains(err.Error(), `rule "b" was added by "bob"`) {
		t.Errorf("a rule was added: %v, want its name", err)
	}
	edit.IfVersions = versionsIn(t, s, "default")
	if done := must(s.RollbackRules(t.Context(), "default", 1, edit))(t); len(done.Updated) != 1 || len(done.Deleted) != 1 {
		t.Errorf("rolled back: %s", asJSON(t, done))
	}
}
