package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/postgres"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
	"github.com/sluicehq/sluice/internal/testpg"
)

func TestSnapshot_HoldsRulesTiersAndNetworksOfOneRevision(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	s := db.As(root)
	must(s.CreateNamespace(t.Context(), "shop", by))(t)
	must(s.PutRule(t.Context(), "shop", rule("b", 2), by))(t)
	must(s.PutRule(t.Context(), "default", rule("a", 1), by))(t)
	must(s.PutTier(t.Context(), registry.Tier{Name: "pro", Price: "29 EUR", Groups: []registry.RouteGroup{{Name: "all", Limits: limits}}}, by))(t)
	for _, id := range []string{"10.0.0.0/8", "192.0.2.1"} {
		must(s.PutBlock(t.Context(), registry.Block{Who: registry.Who{Dimension: "ip", ID: id}, Reason: "scan"}, by))(t)
	}
	must(s.PutBlock(t.Context(), registry.Block{Who: registry.Who{Dimension: "ip", ID: "192.0.2.2"}, Until: noon}, by))(t)
	must(s.PutBlock(t.Context(), registry.Block{Who: user("u"), Reason: "not a network"}, by))(t)
	must(s.PutExemption(t.Context(), registry.Exemption{Who: registry.Who{Dimension: "ip", ID: "::1"}}, by))(t)
	got := must(db.Snapshot(t.Context()))(t)
	if got.Revision != 9 || len(got.Rules) != 2 || got.Rules[0].Name != "a" || got.Rules[0].Namespace != "default" || got.Rules[1].Namespace != "shop" ||
		len(got.Tiers) != 1 || got.Tiers[0].Groups[0].Limits[0].Limit != 500 || len(got.Blocks) != 2 || got.Blocks[0].Who.ID != "10.0.0.0/8" ||
		got.Blocks[0].Reason != "scan" || len(got.Exemptions) != 1 || got.Exemptions[0].Author != "ann" || len(got.Quarantined) != 0 {
		t.Errorf("snapshot %s", asJSON(t, got))
	}
}

func TestSnapshot_QuarantinesRowsOfDirectSQLAlone(t *testing.T) {
	t.Parallel()
	db, d := open(t)
	must(db.As(root).PutRule(t.Context(), "default", rule("good", 1), by))(t)
	bodies := map[string]string{
		"too large":  `{"limits": [{"limit": 9223372036854775808, "window": "1m"}]}`,
		"wrong type": `{"limits": "many"}`,
		"no window":  `{"limits": [{"limit": 1, "window": "soon"}]}`,
		"unknown":    `{"limit": 1}`,
	}
	for name, body := range bodies {
		d.Exec(t, testpg.Superuser, `INSERT INTO sluice.rules (namespace, name, body) VALUES ('default', '`+name+`', '`+body+`')`)
	}
	d.Exec(t, testpg.Superuser, `INSERT INTO sluice.tiers (name, body) VALUES ('spoilt', '{"groups": 1}')`)
	got := must(db.Snapshot(t.Context()))(t)
	if len(got.Rules) != 1 || got.Rules[0].Name != "good" || len(got.Tiers) != 0 || len(got.Quarantined) != len(bodies)+1 {
		t.Errorf("snapshot %s with %d quarantined, want the good rule alone and %d", asJSON(t, got), len(got.Quarantined), len(bodies)+1)
	}
	if !slices.ContainsFunc(got.Quarantined, func(q json.RawMessage) bool {
		return strings.Contains(string(q), "too large") && strings.Contains(string(q), "limit")
	}) {
		t.Errorf("quarantined %s, want the names and faults", got.Quarantined)
	}
	listed := must(db.As(root).Rules(t.Context(), "default", registry.Page{}))(t)
	if len(listed.Items) != len(bodies)+1 {
		t.Errorf("%d rules listed, want all of them: operators see what they have to mend", len(listed.Items))
	}
	applied := must(db.As(root).ApplyRules(t.Context(), "default", nil, true, by))(t)
	if len(applied.Deleted) != len(bodies)+1 {
		t.Errorf("applied %+v, want all deleted", applied)
	}
}

func TestTables_RefuseBodiesThatAreTooLarge(t *testing.T) {
	t.Parallel()
	db, d := open(t)
	long := rule("long", 1)
	long.Match.Users = []string{strings.Repeat("x", 300<<10)}
	_, err := db.As(root).PutRule(t.Context(), "default", long, by)
	wantErr(t, "PutRule of 300 KB", err, registry.ErrInvalid)
	err = d.Server.Exec(testpg.Superuser, d.Name, `INSERT INTO sluice.rules (namespace, name, body) VALUES ('default', 'x', to_jsonb(repeat('x', 10)))`)
	if err == nil {
		t.Error("a rule that is a string was taken")
	}
}

func TestListen_TellsOfEveryChangeOnceItIsCommitted(t *testing.T) {
	t.Parallel()
	db, d := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	notices := make(chan registry.Notice, 100)
	ended := make(chan error, 1)
	go func() { ended <- db.Listen(ctx, func(n registry.Notice) { notices <- n }) }()
	if n := <-notices; n != (registry.Notice{}) {
		t.Errorf("the first notice is %+v, want an empty one: listening now", n)
	}
	s := db.As(root)
	must(s.PutRule(t.Context(), "default", rule("a", 1), by))(t)
	trial := by
	trial.DryRun = true
	must(s.PutRule(t.Context(), "default", rule("a", 2), trial))(t)
	must(s.PutBlock(t.Context(), registry.Block{Who: user(strings.Repeat("ü", 255))}, by))(t)
	must(s.CreateKey(t.Context(), key("k1"), by))(t)
	must(s.ImportSubjects(t.Context(), generate(3, "pro"), by))(t)
	d.Exec(t, testpg.App, `NOTIFY sluice_changes, 'nonsense'`)
	for _, want := range []registry.Notice{
		{Revision: 1, Kind: registry.KindRule},
		{Revision: 2, Kind: registry.KindBlock, Who: user(strings.Repeat("ü", 255))},
		{Revision: 3, Kind: registry.KindKey, Who: registry.Who{Dimension: "api_key", ID: "k1"}},
		{Revision: 4, Kind: registry.KindSubject},
		{},
	} {
		if got := <-notices; got != want {
			t.Errorf("notice %+v, want %+v", got, want)
		}
	}
	cancel()
	wantErr(t, "Listen", <-ended, context.Canceled)
}

func TestListen_EndsWhenItsConnectionIsCut(t *testing.T) {
	t.Parallel()
	db, d := open(t)
	listening := make(chan registry.Notice, 1)
	ended := make(chan error, 1)
	go func() { ended <- db.Listen(t.Context(), func(n registry.Notice) { listening <- n }) }()
	<-listening
	d.Exec(t, testpg.Superuser, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()`)
	wantErr(t, "Listen", <-ended, registry.ErrUnavailable)
}

func TestHeartbeat_KeepsTheNewestWordOfEachNode(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	now := time.Now().UTC().Truncate(time.Microsecond)
	for _, beat := range [][]registry.Node{
		{{Name: "n1", Revision: 3, Version: "v1", SeenAt: now}, {Name: "n2", Revision: 2, SeenAt: now}},
		{{Name: "n1", Revision: 2, SeenAt: now.Add(-time.Second)}, {Name: "n2", Revision: 4, SeenAt: now.Add(time.Second)}},
		{{Name: "n3", Revision: 1}, {Name: "old", Revision: 1, SeenAt: now.Add(-2 * time.Hour)}},
	} {
		if err := db.Heartbeat(t.Context(), beat); err != nil {
			t.Fatal(err)
		}
	}
	got := must(db.Nodes(t.Context()))(t)
	if len(got) != 3 || got[0].Revision != 3 || got[0].Version != "v1" || !got[0].SeenAt.Equal(now) || got[1].Revision != 4 || got[2].SeenAt.IsZero() {
		t.Errorf("nodes %+v", got)
	}
}

func TestWriters_NeverLeaveAGapOrGoBack(t *testing.T) {
	t.Parallel()
	db, d := open(t)
	const writers, each = 6, 15
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last sluice.Revision
	var watching sync.WaitGroup
	watching.Go(func() {
		watcher := connect(t, d.URL())
		for ctx.Err() == nil {
			s, err := watcher.Snapshot(ctx)
			if err != nil {
				continue
			}
			if s.Revision < last {
				t.Errorf("revision %d after %d", s.Revision, last)
			}
			for _, r := range s.Rules { // every change gives both rules the same limit
				if want := s.Rules[0].Limits[0].Limit; len(s.Rules) != 2 || r.Limits[0].Limit != want {
					t.Errorf("revision %d has rules %s: half of a change", s.Revision, asJSON(t, s.Rules))
				}
			}
			last = s.Revision
		}
	})
	var writing sync.WaitGroup
	for i := range writers {
		writing.Go(func() {
			for j := range each {
				n := int64(1 + i*each + j)
				if _, err := db.As(root).ApplyRules(t.Context(), "default", []ruledoc.Rule{rule("x", n), rule("y", n)}, false, by); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	cancel()
	watching.Wait()
	var revisions, newest int64
	err := session(t, d, testpg.Superuser).QueryRow(t.Context(), `SELECT count(DISTINCT revision), max(revision) FROM sluice.changes`).Scan(&revisions, &newest)
	if err != nil || revisions != writers*each || newest != writers*each {
		t.Errorf("%d revisions up to %d (%v), want %d without a gap", revisions, newest, err, writers*each)
	}
}

func TestDatabase_ThatIsDownIsUnavailableAndComesBack(t *testing.T) {
	t.Parallel()
	server := testpg.Start(t, testpg.Options{})
	db, err := postgres.Open(t.Context(), postgres.Options{URL: server.Database(t).URL(), Timeout: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	must(db.As(root).PutRule(t.Context(), "default", rule("a", 1), by))(t)
	for what, fail := range map[string]func() (back func()){
		"killed": func() func() { server.Kill(); return server.Restart },
		"paused": func() func() { server.Pause(); return server.Resume },
	} {
		back := fail()
		for call, err := range map[string]error{
			"Ping":     db.Ping(t.Context()),
			"Revision": errOf(db.Revision(t.Context())),
			"Snapshot": errOf(db.Snapshot(t.Context())),
			"Record":   errOf(db.Record(t.Context(), user("u"))),
			"PutRule":  errOf(db.As(root).PutRule(t.Context(), "default", rule("a", 2), by)),
			"Rules":    errOf(db.As(root).Rules(t.Context(), "default", registry.Page{})),
			"Listen":   listenBriefly(t, db),
			"AddUses":  db.AddUses(t.Context(), map[string]registry.Use{"k": {}}),
		} {
			if !errors.Is(err, registry.ErrUnavailable) {
				t.Errorf("%s of a database that is %s: %v, want %v", call, what, err, registry.ErrUnavailable)
			}
		}
		back()
		got := must(eventually(t, func() (registry.Rule, error) { return db.As(root).Rule(t.Context(), "default", "a") }))(t)
		if got.Body.Limits[0].Limit != 1 {
			t.Errorf("the rule has limit %d after the server was %s, want 1: what was committed stays, what failed did not happen", got.Body.Limits[0].Limit, what)
		}
	}
}

func listenBriefly(t *testing.T, db *postgres.DB) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	return db.Listen(ctx, func(registry.Notice) {})
}

func errOf[T any](_ T, err error) error { return err }

// eventually asks again while the database is unavailable.
func eventually[T any](t *testing.T, ask func() (T, error)) (T, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		v, err := ask()
		if !errors.Is(err, registry.ErrUnavailable) || ctx.Err() != nil {
			return v, err
		}
	}
}

func TestOpen_ConnectsToNothingAndKeepsNoIdleConnections(t *testing.T) {
	t.Parallel()
	down, err := postgres.Open(t.Context(), postgres.Options{URL: "postgres://nobody@127.0.0.1:1/none"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(down.Close)
	db, _ := open(t)
	if got := db.Conns(); got != 0 {
		t.Errorf("%d connections before the first question, want 0", got)
	}
	_, err = postgres.Open(t.Context(), postgres.Options{URL: "postgres://u:geheim%zz@h/d"})
	if err == nil || strings.Contains(err.Error(), "geheim") {
		t.Errorf("a faulty URL: %v, want an error without the password", err)
	}
}
