package postgres_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/postgres"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/testnode"
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
	server := testpg.Start(t, testpg.Options{TLS: true, Empty: true})
	encrypted, plain := server.Database(t), testpg.New(t)
	// bare is the owner's URL with another host and mode, and without a certificate.
	bare := func(d *testpg.Database, host, mode string) string {
		u, err := url.Parse(d.OwnerURL())
		if err != nil {
			t.Fatal(err)
		}
		u.Host, u.RawQuery = net.JoinHostPort(host, u.Port()), "sslmode="+mode
		return u.String()
	}
	const here, elsewhere = "127.0.0.1", "localhost" // the certificate is for the first
	right, wrong := trusting(t, server.CAFile()), trusting(t, testnode.NewAuthority(t).File)
	for _, c := range []struct {
		what string
		opts postgres.Options
		says string // what is to be done; empty: it works
	}{
		{"certificate in the URL", postgres.Options{URL: encrypted.OwnerURL()}, ""},
		{"certificate given", postgres.Options{URL: bare(encrypted, here, "verify-full"), TLS: right}, ""},
		{"certificate given, any mode", postgres.Options{URL: bare(encrypted, here, "prefer"), TLS: right}, ""},
		{"another authority", postgres.Options{URL: bare(encrypted, here, "verify-full"), TLS: wrong}, "set database.ca_file"},
		{"another authority, any mode", postgres.Options{URL: bare(encrypted, here, "prefer"), TLS: wrong}, "set database.ca_file"},
		{"authorities of the system", postgres.Options{URL: bare(encrypted, here, "verify-full")}, "set database.ca_file"},
		{"another name", postgres.Options{URL: bare(encrypted, elsewhere, "verify-full"), TLS: right}, "connect by one that is in it"},
		{"another name, certificate in the URL", postgres.Options{URL: bare(encrypted, elsewhere, "verify-full") + "&sslrootcert=" + server.CAFile()}, "connect by one that is in it"},
		{"a server without TLS", postgres.Options{URL: bare(plain, here, "verify-full"), TLS: right}, "set ssl = on in postgresql.conf"},
		{"a server without TLS, any mode", postgres.Options{URL: bare(plain, here, "disable"), TLS: right}, "set ssl = on in postgresql.conf"},
		{"plain text, which is off", postgres.Options{URL: bare(encrypted, here, "disable")}, "no encryption"},
	} {
		db, err := postgres.Open(t.Context(), c.opts)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		listening, cancel := context.WithCancel(t.Context())
		for call, err := range map[string]error{
			"MigrateWith": postgres.MigrateWith(t.Context(), c.opts),
			"Ping":        db.Ping(t.Context()),
			"Listen":      db.Listen(listening, func(registry.Notice) { cancel() }),
		} {
			switch {
			case c.says == "" && err != nil && !errors.Is(err, context.Canceled):
				t.Errorf("%s: %s: %v, want it to work", c.what, call, err)
			case c.says != "" && (!errors.Is(err, registry.ErrUnavailable) || !strings.Contains(err.Error(), c.says)):
				t.Errorf("%s: %s: %v, want it refused, with %q", c.what, call, err, c.says)
			}
		}
		cancel()
	}
}

// trusting trusts the certificates of a file, as database.ca_file does.
func trusting(t *testing.T, file string) *tls.Config {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cfg := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	if !cfg.RootCAs.AppendCertsFromPEM(text) {
		t.Fatalf("%s has no certificate", file)
	}
	return cfg
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
