package directory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

const pepper = "a pepper of at least thirty-two characters"

// fakeDatabase answers from a map, after a while, and counts.
type fakeDatabase struct {
	mu        sync.Mutex
	takes     time.Duration
	records   map[registry.Who]registry.Record
	err       error
	questions int
	uses      map[string]registry.Use
}

func (db *fakeDatabase) Records(ctx context.Context, whos []registry.Who) ([]registry.Record, error) {
	db.mu.Lock()
	db.questions++
	records, err, takes := make([]registry.Record, len(whos)), db.err, db.takes
	for i, w := range whos { // as it is when the question comes
		records[i] = db.records[w]
	}
	db.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return records, err
}

func (db *fakeDatabase) AddUses(_ context.Context, uses map[string]registry.Use) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.err != nil {
		return db.err
	}
	for id, u := range uses {
		db.uses[id] = registry.Use{Count: db.uses[id].Count + u.Count, Last: u.Last}
	}
	return nil
}

func (db *fakeDatabase) set(dimension, id string, r registry.Record) {
	db.mu.Lock()
	defer db.mu.Unlock()
	r.Found = true
	db.records[registry.Who{Dimension: dimension, ID: id}] = r
}

func (db *fakeDatabase) fail(err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.err = err
}

func (db *fakeDatabase) slow(takes time.Duration) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.takes = takes
}

func (db *fakeDatabase) used(id string) registry.Use {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.uses[id]
}

func (db *fakeDatabase) asked() int {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.questions
}

// begin runs a directory on a fake database in a bubble, until the bubble's end.
func begin(t *testing.T, opts LiveOptions) (*Live, *fakeDatabase, func()) {
	t.Helper()
	db := &fakeDatabase{takes: time.Millisecond, records: map[registry.Who]registry.Record{}, uses: map[string]registry.Use{}}
	opts.Pepper, opts.Entries = pepper, 1024
	l := NewLive(New(nil), db, opts)
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { _ = l.Run(ctx) })
	return l, db, func() { cancel(); done.Wait() }
}

func tierOf(l *Live, user string) string {
	s := sluice.Subject{User: user}
	l.Fill("", &s)
	return s.Tier
}

func TestLiveFill_KnowsWhatIsOnRecordFromTheFirstRequestOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, db, end := begin(t, LiveOptions{})
		defer end()
		until := time.Now().Add(time.Hour)
		limits := []ruledoc.Limit{{Limit: 5, Window: ruledoc.Duration(time.Minute)}}
		db.set("user", "ann", registry.Record{Tier: "pro", Exempt: true, Blocked: &sluice.BlockedSubject{Reason: "abuse", Until: until}})
		db.set("tenant", "acme", registry.Record{Tier: "team", Overrides: []registry.Override{
			{Namespace: "shop", Rule: "api", Limits: limits},
			{Namespace: "default", Rule: "later", Limits: limits, ValidFrom: until},
			{Namespace: "default", Rule: "api", Limits: limits, ValidUntil: until},
			{Namespace: "default", Rule: "faulty", Limits: []ruledoc.Limit{{Limit: -1}}},
		}})
		s := sluice.Subject{User: "ann", Tenant: "acme"}
		l.Fill("", &s)
		if s.Tier != "pro" || !s.Exempt || s.Blocked == nil || len(s.Overrides) != 1 || s.Overrides[0].Rule != "api" {
			t.Errorf("the first request saw %+v", s)
		}
		if n := db.asked(); n > 2 { // the first name may be asked about before the second is queued
			t.Errorf("%d questions about two names", n)
		}
		time.Sleep(2 * time.Hour) //nolint:forbidigo // the bubble's clock; blocks and overrides end by themselves
		s = sluice.Subject{User: "ann", Tenant: "acme"}
		db.fail(errors.New("down"))
		l.Fill("", &s)
		if s.Tier != "pro" || s.Blocked != nil || len(s.Overrides) != 1 || s.Overrides[0].Rule != "later" {
			t.Errorf("with the database down, two hours later: %+v", s)
		}
	})
}

func TestLiveFill_AsksOnceForManyRequestsAndForThoseOnNoRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, db, end := begin(t, LiveOptions{})
		defer end()
		db.set("user", "ann", registry.Record{Tier: "pro"})
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				if got := tierOf(l, "ann"); got != "pro" {
					t.Errorf("request %d is on tier %q", i, got)
				}
				tierOf(l, "nobody")
			})
		}
		all.Wait()
		if n := db.asked(); n > 3 {
			t.Errorf("%d questions about two subjects", n)
		}
		time.Sleep(10 * time.Second) //nolint:forbidigo // the bubble's clock
		before := db.asked()
		tierOf(l, "ann")
		tierOf(l, "nobody")
		if db.asked() != before {
			t.Error("what is fresh was asked for again")
		}
	})
}

func TestLiveFill_WaitsNoLongerThanItMay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, db, end := begin(t, LiveOptions{Wait: 5 * time.Millisecond})
		defer end()
		db.slow(400 * time.Millisecond)
		db.set("user", "ann", registry.Record{Tier: "pro"})
		began := time.Now()
		if got := tierOf(l, "ann"); got != "" || time.Since(began) > 5*time.Millisecond {
			t.Errorf("tier %q after %v, want none after 5ms", got, time.Since(began))
		}
		time.Sleep(500 * time.Millisecond) //nolint:forbidigo // the bubble's clock
		if got := tierOf(l, "ann"); got != "pro" {
			t.Errorf("tier %q once the answer is there", got)
		}
		reqs := make([]sluice.Subject, 500)
		began = time.Now()
		for i := range reqs {
			reqs[i].User = fmt.Sprint("user-", i)
			l.Expect(&reqs[i])
		}
		for i := range reqs {
			l.Fill("", &reqs[i])
		}
		if took := time.Since(began); took > 5*time.Millisecond {
			t.Errorf("500 subjects that were expected took %v together", took)
		}
	})
}

func TestLiveFill_WaitsForNobodyWhileTheDatabaseIsDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, db, end := begin(t, LiveOptions{})
		defer end()
		db.set("user", "ann", registry.Record{Tier: "pro"})
		tierOf(l, "ann")
		db.fail(errors.New("down"))
		tierOf(l, "bob")            // finds out
		time.Sleep(3 * time.Minute) //nolint:forbidigo // the bubble's clock
		began := time.Now()
		for range 100 {
			if got := tierOf(l, "ann"); got != "pro" {
				t.Fatalf("tier %q of the last good answer", got)
			}
			tierOf(l, "carl")
		}
		if took := time.Since(began); took > 10*time.Millisecond {
			t.Errorf("200 requests waited %v for a database that is down", took)
		}
		db.set("user", "ann", registry.Record{Tier: "gold"})
		db.fail(nil)
		for range 4 { // the first may have joined a question that failed just before
			tierOf(l, "ann")
			time.Sleep(250 * time.Millisecond) //nolint:forbidigo // the bubble's clock
		}
		if got := tierOf(l, "ann"); got != "gold" {
			t.Errorf("tier %q a second after the database came back", got)
		}
	})
}

func TestInvalidate_ActsAtOnceAlsoOnAQuestionUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, db, end := begin(t, LiveOptions{Wait: time.Second})
		defer end()
		ann := registry.Who{Dimension: "user", ID: "ann"}
		db.set("user", "ann", registry.Record{Tier: "free"})
		tierOf(l, "ann")
		db.set("user", "ann", registry.Record{Tier: "pro"})
		l.Notice(registry.Notice{Revision: 2, Kind: registry.KindSubject, Who: ann})
		if got := tierOf(l, "ann"); got != "pro" {
			t.Errorf("tier %q after the notice", got)
		}
		l.Notice(registry.Notice{Revision: 3, Kind: registry.KindSubject, Who: ann})
		db.slow(100 * time.Millisecond)
		var asking sync.WaitGroup
		asking.Go(func() { tierOf(l, "ann") })
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // the bubble's clock; the question has read the old
		db.set("user", "ann", registry.Record{Tier: "gold"})
		l.Notice(registry.Notice{Revision: 4, Kind: registry.KindSubject, Who: ann})
		if got := tierOf(l, "ann"); got != "gold" {
			t.Errorf("tier %q: the answer to an older question was taken", got)
		}
		asking.Wait()
		db.slow(time.Millisecond)
		db.set("user", "ann", registry.Record{Tier: "team"})
		l.Notice(registry.Notice{Revision: 5, Kind: registry.KindRule})
		if got := tierOf(l, "ann"); got != "gold" {
			t.Errorf("tier %q: a changed rule made it forget subjects", got)
		}
		l.Notice(registry.Notice{})
		if got := tierOf(l, "ann"); got != "team" {
			t.Errorf("tier %q after changes may have been missed", got)
		}
	})
}

func TestLiveFill_FindsLostChangesByAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, db, end := begin(t, LiveOptions{})
		defer end()
		db.set("user", "busy", registry.Record{Tier: "free"})
		db.set("user", "rare", registry.Record{Tier: "free"})
		tierOf(l, "busy")
		tierOf(l, "rare")
		db.set("user", "busy", registry.Record{Tier: "pro"})
		db.set("user", "rare", registry.Record{Tier: "pro"})
		changed := time.Now()
		for tierOf(l, "busy") != "pro" {
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // the bubble's clock
			if time.Since(changed) > 101*time.Second {
				t.Fatal("a subject in use is not known after 101s")
			}
		}
		time.Sleep(time.Until(changed.Add(160 * time.Second))) //nolint:forbidigo // the bubble's clock
		if got := tierOf(l, "rare"); got != "pro" {
			t.Errorf("a subject that comes back after 160s is on tier %q", got)
		}
	})
}
