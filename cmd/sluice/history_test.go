package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/postgres"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/testnode"
	"github.com/sluicehq/sluice/internal/testpg"
)

// blockTwo makes two changes.
func blockTwo(t *testing.T, d *testpg.Database) {
	t.Helper()
	db, err := postgres.Open(t.Context(), postgres.Options{URL: d.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := db.As(registry.Actor{Name: "ann", Grants: []registry.Grant{{Namespace: "*", Role: registry.Admin}}})
	for _, id := range []string{"mallory", "trudy"} {
		if _, err := s.PutBlock(t.Context(), registry.Block{Who: registry.Who{Dimension: "user", ID: id}}, registry.Edit{Reason: "abuse"}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHistoryVerify_TellsWhatToNoteAndFindsWhatIsNotAsNoted(t *testing.T) {
	t.Parallel()
	d := testpg.New(t)
	blockTwo(t, d)
	config := filepath.Join(t.TempDir(), "sluice.toml")
	if err := os.WriteFile(config, []byte("[database]\nurl = \""+d.URL()+"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	verify := func(code int, want string, args ...string) string {
		t.Helper()
		return run(t, nil, code, want, append([]string{"history", "verify", "--url", d.URL()}, args...)...).Stdout
	}
	run(t, nil, 0, "2 changes checked, all as they were written\nnote for the next check: 2:", "history", "verify", "--config", config)
	out := verify(0, `{"changes":2,"unused_revisions":0,"head":"2:`, "--output", "json")
	noted := regexp.MustCompile(`2:[0-9a-f]{64}`).FindString(out)
	verify(0, noted, "--noted", noted)
	verify(exitError, "revision 2 has another hash than the noted one", "--noted", "2:"+strings.Repeat("0", 64))

	d.Exec(t, testpg.Superuser, "UPDATE sluice.revision SET value = value + 1")
	verify(0, "1 revision without a change: somebody raised the revision by hand\n")
	d.Exec(t, testpg.Superuser, "UPDATE sluice.changes SET actor = 'trudy' WHERE revision = 2")
	if out := verify(exitError, "sluice: the history is not as it was written: change 0 of revision 2 does not follow", "--noted", noted); out != "" {
		t.Errorf("printed %q, want nothing to note", out)
	}
	out = verify(exitError, `"fault":{"revision":2,"seq":0,"text":"change 0 of revision 2 does not follow`, "-o", "json")
	if strings.Contains(out, "head") {
		t.Errorf("printed %q, want nothing to note", out)
	}
}

func TestHistoryVerify_MistakesAreTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code       int
		args, want string
	}{
		{exitUsage, "--noted nonsense", "want a revision, a colon and the 64 digits of its hash"},
		{exitUsage, "--noted 12:ab12", "64 digits"},
		{exitUsage, "--noted=", "64 digits"},
		{exitUsage, "", "postgres://sluice_app@host:5432/sluice"},
		{exitUsage, "--url postgres://a:se-cret@localhost/sluice", "--url-file"},
		{exitUsage, "--url postgres://a@localhost/sluice --url-file x", "both given"},
		{exitError, "--url-file /nonexistent", "/nonexistent"},
		{exitError, "--url postgres://a@127.0.0.1:1/sluice", "127.0.0.1"},
	} {
		out := testnode.Run(t, nil, append([]string{"history", "verify"}, strings.Fields(c.args)...)...)
		if out.Code != c.code || !strings.Contains(out.Stderr, c.want) || strings.Contains(out.Stderr, "se-cret") || out.Stdout != "" {
			t.Errorf("sluice history verify %s: got exit code %d, want %d and %q:\n%s%s", c.args, out.Code, c.code, c.want, out.Stdout, out.Stderr)
		}
	}
}

func TestProgress_FollowsAnEndThatMoves(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := newProgress(&out, checking, 10)
	p.next = p.next.Add(-2 * lineEvery)
	p.reach(5, 12)
	p.reach(6, 12) // too soon for another line
	p.end(errors.New("broken off"))
	if want := "checked revision 5 of 12\n"; out.String() != want {
		t.Errorf("wrote %q, want %q", out.String(), want)
	}
}
