package postgres_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/postgres"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/testpg"
)

func TestMigrate_ManyAtOnceApplyEachMigrationOnce(t *testing.T) {
	t.Parallel()
	d := testpg.Start(t, testpg.Options{Empty: true}).Database(t)
	db := connect(t, d.URL())
	if n := must(db.Pending(t.Context()))(t); n == 0 {
		t.Error("nothing is pending in an empty database")
	}
	_, err := db.Revision(t.Context())
	wantErr(t, "Revision before the migration", err, registry.ErrUnavailable)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := postgres.Migrate(t.Context(), d.OwnerURL(), nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := must(db.Pending(t.Context()))(t); n != 0 {
		t.Errorf("%d pending after the migration", n)
	}
	if n := must(db.Revision(t.Context()))(t); n != 0 {
		t.Errorf("revision %d, want 0", n)
	}
}

func TestMigrate_SaysWhatToDoWithoutTheApplicationsRole(t *testing.T) {
	t.Parallel()
	server := testpg.Start(t, testpg.Options{Empty: true})
	d := server.Database(t)
	d.Exec(t, testpg.Superuser, "DROP ROLE sluice_app")
	err := postgres.Migrate(t.Context(), d.OwnerURL(), nil)
	if err == nil || !strings.Contains(err.Error(), "CREATE ROLE sluice_app") {
		t.Errorf("error %v, want the statement that an administrator has to run", err)
	}
	// Whoever may create roles needs nobody.
	if err := postgres.Migrate(t.Context(), d.As(testpg.Superuser), nil); err != nil {
		t.Error(err)
	}
}

func TestOpen_EncryptsAndChecksTheServersCertificate(t *testing.T) {
	t.Parallel()
	server := testpg.Start(t, testpg.Options{TLS: true})
	d := server.Database(t)
	text, err := os.ReadFile(server.CAFile())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	bare := func(mode string) string {
		u, err := url.Parse(d.URL())
		if err != nil {
			t.Fatal(err)
		}
		u.RawQuery = "sslmode=" + mode
		return u.String()
	}
	for what, c := range map[string]struct {
		opts postgres.Options
		ok   bool
	}{
		"certificate in the URL":   {postgres.Options{URL: d.URL()}, true},
		"certificate given":        {postgres.Options{URL: bare("prefer"), TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}, true},
		"another authority":        {postgres.Options{URL: bare("prefer"), TLS: &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}}, false},
		"authority of the system":  {postgres.Options{URL: bare("verify-full")}, false},
		"plain text, which is off": {postgres.Options{URL: bare("disable")}, false},
	} {
		db, err := postgres.Open(t.Context(), c.opts)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		if err := db.Ping(t.Context()); (err == nil) != c.ok || err != nil && !errors.Is(err, registry.ErrUnavailable) {
			t.Errorf("%s: %v, want it to work: %v", what, err, c.ok)
		}
	}
}

func TestListen_NoticesASilentConnection(t *testing.T) {
	t.Parallel()
	server := testpg.Start(t, testpg.Options{})
	db, err := postgres.Open(t.Context(), postgres.Options{URL: server.Database(t).URL(), Timeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	listening := make(chan registry.Notice, 1)
	ended := make(chan error, 1)
	go func() { ended <- db.Listen(t.Context(), func(n registry.Notice) { listening <- n }) }()
	<-listening
	server.Pause()
	select {
	case err := <-ended:
		wantErr(t, "Listen", err, registry.ErrUnavailable)
	case <-time.After(20 * time.Second):
		t.Error("Listen still trusts a connection on which nobody answers")
	}
}

func TestFailover_LosesNoCommittedChange(t *testing.T) {
	t.Parallel()
	primary := testpg.Start(t, testpg.Options{})
	name := primary.Database(t).Name
	standby := primary.Standby(t)
	db := connect(t, testpg.EitherURL(testpg.App, name, primary, standby))
	s := db.As(root)
	for i := range 20 {
		must(s.PutRule(t.Context(), "default", rule("r", int64(i+1)), by))(t)
	}
	primary.Kill()
	_, err := s.PutRule(t.Context(), "default", rule("r", 99), by)
	wantErr(t, "PutRule with a standby alone", err, registry.ErrUnavailable)
	standby.Promote()
	got := must(eventually(t, func() (registry.Rule, error) { return s.Rule(t.Context(), "default", "r") }))(t)
	if got.Body.Limits[0].Limit != 20 || got.Version != 20 {
		t.Errorf("limit %d at version %d after the failover, want 20 at 20", got.Body.Limits[0].Limit, got.Version)
	}
	if got := must(s.PutRule(t.Context(), "default", rule("r", 21), by))(t); got.Version != 21 {
		t.Errorf("version %d, want 21", got.Version)
	}
}

func TestCalls_EndWithTheirContext(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := db.Snapshot(ctx)
	wantErr(t, "Snapshot", err, context.Canceled)
	if errors.Is(err, registry.ErrUnavailable) {
		t.Errorf("%v: the database is well", err)
	}
}

func TestStatements_WorkInEveryModeThatPoolersNeed(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		d := testpg.New(t)
		db := connect(t, d.URL()+"&default_query_exec_mode="+mode)
		s := db.As(root)
		for what, err := range map[string]error{
			"PutRule":     errOf(s.PutRule(t.Context(), "default", rule("r", 1), by)),
			"PutSubject":  errOf(s.PutSubject(t.Context(), registry.Subject{Who: user("u"), Tier: "pro", TierSince: noon}, by)),
			"PutOverride": errOf(s.PutOverride(t.Context(), registry.Override{Namespace: "default", Who: user("u"), Rule: "r", Limits: limits, ValidFrom: noon}, by)),
			"CreateKey":   errOf(s.CreateKey(t.Context(), key("k"), by)),
			"RotateKey":   errOf(s.RotateKey(t.Context(), "k", hash(2), time.Now().Add(time.Hour), by)),
			"PutBlock":    errOf(s.PutBlock(t.Context(), registry.Block{Who: user("u")}, by)),
			"CreateToken": errOf(s.CreateToken(t.Context(), registry.Token{ID: "t", Name: "t", Hash: hash(1)}, by)),
			"History":     errOf(s.History(t.Context(), registry.HistoryFilter{Kind: registry.KindRule}, registry.Page{})),
			"Overrides":   errOf(s.Overrides(t.Context(), registry.OverrideFilter{Namespace: "default"}, registry.Page{})),
			"Import":      errOf(s.ImportSubjects(t.Context(), generate(5, "pro"), by)),
			"Heartbeat":   db.Heartbeat(t.Context(), []registry.Node{{Name: "n", SeenAt: noon}, {Name: "m"}}),
			"AddUses":     db.AddUses(t.Context(), map[string]registry.Use{"k": {Count: 1, Last: noon}}),
		} {
			if err != nil {
				t.Errorf("%s: %s: %v", mode, what, err)
			}
		}
		if r := must(db.Record(t.Context(), user("u")))(t); r.Blocked == nil || r.Tier != "pro" || len(r.Overrides) != 1 {
			t.Errorf("%s: record %+v", mode, r)
		}
		if snap := must(db.Snapshot(t.Context()))(t); len(snap.Rules) != 1 {
			t.Errorf("%s: snapshot %+v", mode, snap)
		}
	}
}

func TestUnguarded_TellsWhoPassesRowLevelSecurity(t *testing.T) {
	t.Parallel()
	d := testpg.New(t)
	for role, want := range map[string]bool{testpg.App: false, testpg.Owner: false, testpg.Superuser: true} {
		if got := must(connect(t, d.As(role)).Unguarded(t.Context()))(t); got != want {
			t.Errorf("%s: %v, want %v", role, got, want)
		}
	}
}
