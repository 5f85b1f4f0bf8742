package rulefeed_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/ruledoc"
	"github.com/sluicehq/sluice/internal/rulefeed"
)

// pair is a feed of files and a database.
type pair struct {
	files, db *record
	feed      *rulefeed.Feed
	log       bytes.Buffer
	limits    map[string]int64 // in force
	observed  []rulefeed.Status
}

// newPair has rule "file" with a limit of 1 in a file, and rule "own" with a limit of 1 at revision 10 in the database.
func newPair() *pair {
	p := &pair{files: &record{changed: make(chan struct{}, 1)}, db: &record{changed: make(chan struct{}, 1)}}
	p.write(oneRule("file", 1))
	p.keep(10, 1)
	p.feed = rulefeed.New(rulefeed.NewJoined(p.files, p.db), func(r rulefeed.Rules) { p.limits = limitsOf(r.Set) }, rulefeed.Options{
		Log: slog.New(slog.NewTextHandler(&p.log, nil)), Observe: func(s rulefeed.Status) { p.observed = append(p.observed, s) },
	})
	return p
}

// write makes the files these: a.toml, b.toml and so on.
func (p *pair) write(texts ...string) {
	s := rulefeed.Snapshot{Revision: 9_000_000}
	for i, text := range texts {
		s.Texts = append(s.Texts, rulefeed.Text{Name: fmt.Sprintf("%c.toml", 'a'+i), Format: ruledoc.TOML, Data: []byte(text)})
	}
	p.files.set(s)
}

// keep makes the database's rule have another limit.
func (p *pair) keep(revision sluice.Revision, limit int64) {
	p.db.set(rulefeed.Snapshot{Revision: revision, Texts: document(minute("own", limit))})
}

func (p *pair) load(t *testing.T) rulefeed.Status {
	t.Helper()
	if err := p.feed.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p.feed.Status()
}

// told counts how often the log says that rules were not loaded.
func (p *pair) told() int { return strings.Count(p.log.String(), "rules not loaded") }

func oneRule(name string, limit int) string {
	return fmt.Sprintf("[[rule]]\nname = %q\nkey = [\"ip\"]\nlayer = %q\nlimits = [{ limit = %d, window = \"1m\" }]\n", name, name, limit)
}

const broken = "[[rule]\n"

func TestJoined_ABrokenFileDoesNotHoldUpTheDatabase(t *testing.T) {
	t.Parallel()
	p := newPair()
	p.load(t)

	p.write(oneRule("file", 5) + broken)
	p.load(t)
	if s := p.load(t); !s.Stale || s.LastError == "" || len(s.Faults) != 1 || s.Faults[0].File != "a.toml" || s.Faults[0].Line != 6 || s.Revision != 10 || p.told() != 1 {
		t.Errorf("broken: status %+v, told %d times, want the fault once, at revision 10", s, p.told())
	}
	for i := range 3 {
		p.keep(sluice.Revision(20+i), int64(2+i))
		s := p.load(t)
		if p.limits["own"] != int64(2+i) || p.limits["file"] != 1 || s.Revision != sluice.Revision(20+i) || s.Kept != s.Revision {
			t.Errorf("changed in the database: limits %v at revision %d (%d kept), want %d of the database, 1 of the file, and revision %d", p.limits, s.Revision, s.Kept, 2+i, 20+i)
		}
		if !s.Stale || len(s.Faults) != 1 || s.Rules != 2 || p.told() != 1 {
			t.Errorf("changed in the database: status %+v, told %d times, want the file's fault, told once", s, p.told())
		}
	}
	if last := p.observed[len(p.observed)-1]; len(p.observed) != 5 || !last.Stale || len(last.Faults) != 1 {
		t.Errorf("observed %d loads, the last %+v, want each that found something new: 5, with the fault", len(p.observed), last)
	}

	p.write(oneRule("file", 6) + "\n" + broken)
	if s := p.load(t); s.Faults[0].Line != 7 || p.told() != 2 {
		t.Errorf("broken elsewhere: status %+v, told %d times, want the new place, told", s, p.told())
	}
	p.write(oneRule("file", 7))
	if s := p.load(t); s.Stale || len(s.Faults) != 0 || p.limits["file"] != 7 || p.limits["own"] != 4 || s.Revision != 23 || s.Kept != 22 {
		t.Errorf("mended: limits %v, status %+v, want the file's, no fault, and the next revision", p.limits, s)
	}
	p.write(oneRule("file", 6) + "\n" + broken)
	if p.load(t); p.told() != 3 {
		t.Errorf("broken as before: told %d times, want once more", p.told())
	}
}

func TestJoined_AFileThatIsAsItWasEndsTheFault(t *testing.T) {
	t.Parallel()
	p := newPair()
	p.load(t)
	p.write(broken)
	p.keep(11, 2)
	p.load(t)
	p.write(oneRule("file", 1))
	s := p.load(t)
	if s.Stale || len(s.Faults) != 0 || s.LastError == "" || s.Revision != 11 || p.limits["own"] != 2 || p.limits["file"] != 1 {
		t.Errorf("limits %v, status %+v, want no fault, and revision 11 as it was", p.limits, s)
	}
	if last := p.observed[len(p.observed)-1]; last.Stale || len(last.Faults) != 0 {
		t.Errorf("observed last: %+v, want no fault", last)
	}
}

func TestJoined_AllFilesStayAsTheyWereWhenOneIsBroken(t *testing.T) {
	t.Parallel()
	p := newPair()
	p.write(oneRule("first", 1)+oneRule("moves", 1), oneRule("second", 1))
	p.load(t)
	p.write(oneRule("first", 2), oneRule("second", 2)+oneRule("moves", 2)+broken) // a rule on its way from one to the other is not lost
	p.keep(11, 2)
	p.load(t)
	for name, want := range map[string]int64{"first": 1, "moves": 1, "second": 1, "own": 2} {
		if p.limits[name] != want {
			t.Errorf("limits %v, want %d of %q", p.limits, want, name)
		}
	}
}

func TestJoined_TheFaultsAreThoseOfWhatIsWritten(t *testing.T) {
	t.Parallel()
	p := newPair()
	faulty := oneRule("file", 1) + "[[rule]]\nname = \"none\"\nprioritty = 1\n"
	p.write(faulty, "")
	p.load(t)
	p.write("\n"+faulty, broken) // the faulty rule is told where it is now, and not also where it was
	p.keep(11, 0)
	s := p.load(t)
	var places []string
	for _, f := range s.Faults {
		places = append(places, fmt.Sprintf("%s:%d", f.File, f.Line))
	}
	if got := strings.Join(places, " "); got != "a.toml:9 b.toml:1 database:0" {
		t.Errorf("faults in %s, want one of each place: %v", got, s.Faults)
	}
	if p.limits["own"] != 1 || len(s.Held) != 1 {
		t.Errorf("limits %v, held %v, want the database's faulty rule in its last good form", p.limits, s.Held)
	}
}

func TestJoined_TheRevisionStaysThatOfTheLastWhenItFails(t *testing.T) {
	t.Parallel()
	p := newPair()
	p.load(t)
	p.db.fail(errors.New("gone for a while"))
	p.write(oneRule("file", 2))
	s := p.load(t)
	if p.limits["file"] != 2 || p.limits["own"] != 1 || s.Kept != 10 || s.Revision != 11 || !s.Stale || s.LastError != "gone for a while" || len(s.Faults) != 1 {
		t.Errorf("limits %v, status %+v, want the file's change at revision 11, 10 kept, and the fault", p.limits, s)
	}
	p.db.fail(nil)
	p.keep(30, 3)
	if s := p.load(t); p.limits["own"] != 3 || s.Kept != 30 || s.Revision != 30 || s.Stale || len(s.Faults) != 0 {
		t.Errorf("limits %v, status %+v, want the database's at revision 30", p.limits, s)
	}
}

func TestJoined_TheFirstLoadFailsAsItsSourcesDo(t *testing.T) {
	t.Parallel()
	p := newPair()
	p.write(broken)
	var faults *rulefeed.LoadError
	if err := p.feed.Load(t.Context()); !errors.As(err, &faults) || !strings.Contains(err.Error(), "a.toml:1:") {
		t.Errorf("a broken file: %v, want its fault", err)
	}
	p = newPair()
	gone := errors.New("no rules yet")
	p.db.fail(gone)
	if err := p.feed.Load(t.Context()); !errors.Is(err, gone) {
		t.Errorf("a database that does not answer: %v, want its error", err)
	}
	p.write(broken) // between the two the file was good
	p.db.fail(nil)
	if s := p.load(t); !s.Stale || len(s.Faults) != 1 || p.limits["file"] != 1 || p.limits["own"] != 1 {
		t.Errorf("limits %v, status %+v, want both, the file as it was when the node started", p.limits, s)
	}
}

func TestRun_AFileThatCannotBeReadIsLookedAtAgainAndHoldsNothingUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPair()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.feed.Run(ctx) }()
		synctest.Wait()

		p.files.fail(errors.New("permission denied"))
		p.files.changed <- struct{}{}
		synctest.Wait()
		start := time.Now()
		p.keep(11, 2)
		p.db.changed <- struct{}{}
		synctest.Wait()
		if s := p.feed.Status(); p.limits["own"] != 2 || p.limits["file"] != 1 || !s.Stale || !time.Now().Equal(start) {
			t.Errorf("limits %v, status %+v after %s, want the database's change at once", p.limits, s, time.Since(start))
		}
		p.files.fail(nil)           // and nothing tells of it
		time.Sleep(6 * time.Second) //nolint:forbidigo // the bubble's clock
		synctest.Wait()
		if s := p.feed.Status(); s.Stale || len(s.Faults) != 0 || p.told() != 1 {
			t.Errorf("status %+v, told %d times, want no fault any more, told once", s, p.told())
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	})
}
