package control

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/testredis"
)

// fakeDatabase answers or does not, and counts.
type fakeDatabase struct {
	mu    sync.Mutex
	err   error
	asked int
	beats []registry.Node
}

func (db *fakeDatabase) answer() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.asked++
	return db.err
}

func (db *fakeDatabase) fail(err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.err = err
}

// counts returns how often it was asked anything, and how many beats it was told.
func (db *fakeDatabase) counts() (asked, beats int) {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.asked, len(db.beats)
}

// first returns the first beat that it was told.
func (db *fakeDatabase) first() registry.Node {
	db.mu.Lock()
	defer db.mu.Unlock()
	if len(db.beats) == 0 {
		return registry.Node{}
	}
	return db.beats[0]
}

func (db *fakeDatabase) Snapshot(context.Context) (registry.Snapshot, error) {
	return registry.Snapshot{Revision: 1}, db.answer()
}

func (db *fakeDatabase) Revision(context.Context) (sluice.Revision, error) { return 1, db.answer() }

func (db *fakeDatabase) Listen(ctx context.Context, _ func(registry.Notice)) error {
	<-ctx.Done()
	return ctx.Err()
}

func (db *fakeDatabase) Heartbeat(_ context.Context, nodes []registry.Node) error {
	err := db.answer()
	db.mu.Lock()
	defer db.mu.Unlock()
	if err == nil {
		db.beats = append(db.beats, nodes...)
	}
	return err
}

// follower is the bus of a node that another relays for. It takes no beats where err is set.
type follower struct {
	*alone
	mu  sync.Mutex
	err error
}

func (f *follower) campaign(context.Context, string, time.Duration) (bool, error) { return false, nil }

func (f *follower) beat(context.Context, string, string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

func (f *follower) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// following returns a node that follows another, on a fake database, until the bubble's end.
func following(t *testing.T) (p *Plane, db *fakeDatabase, bus *follower, end func()) {
	t.Helper()
	db, bus = &fakeDatabase{}, &follower{alone: newAlone()}
	s, err := seal(registry.Snapshot{Revision: 1})
	if err != nil {
		t.Fatal(err)
	}
	bus.held = s
	p = New(db, "id", Options{Node: "n", Version: "v"})
	p.bus = bus
	return p, db, bus, begin(t, p)
}

func begin(t *testing.T, p *Plane) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = p.Run(ctx) })
	return func() { cancel(); running.Wait() }
}

func after(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // the bubble's clock
	synctest.Wait()
}

func TestDatabase_IsKnownToBeAwayFromTheFirstQuestionWithoutAnAnswerOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		db := &fakeDatabase{}
		p := New(db, "id", Options{Node: "n", Log: slog.New(slog.NewTextHandler(&log, nil))})
		if got := p.Database(); got != (Contact{}) {
			t.Errorf("before it was asked: %+v", got)
		}
		end := begin(t, p)
		after(10 * time.Second)
		if got := p.Database(); !got.Since.IsZero() || time.Since(got.At) > 3*time.Second {
			t.Errorf("%+v, want an answer of the last seconds", got)
		}
		db.fail(errors.New("down"))
		gone := time.Now()
		after(time.Minute)
		if got := p.Database(); got.Since.Before(gone) || got.Since.After(gone.Add(5*time.Second)) || got.At.After(gone) {
			t.Errorf("%+v, want away since %s and the last answer before", got, gone)
		}
		db.fail(nil)
		after(10 * time.Second)
		if got := p.Database(); !got.Since.IsZero() || got.At.Before(gone) {
			t.Errorf("%+v, want it to be back", got)
		}
		end()
		if text := log.String(); strings.Count(text, "the database does not answer") != 1 || strings.Count(text, "the database answers again") != 1 {
			t.Errorf("want one line when it went and one when it came, got:\n%s", text)
		}
	})
}

func TestDatabase_AFollowerAsksNothingUnlessItWasAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, db, _, end := following(t)
		defer end()
		after(time.Hour)
		if asked, _ := db.counts(); asked != 0 {
			t.Errorf("%d questions within an hour of following", asked)
		}
		db.fail(errors.New("down"))
		if err := p.fromDatabase(t.Context()); err == nil { // as while nobody relayed
			t.Fatal("a database that is down answered")
		}
		after(10 * time.Second)
		if p.Database().Since.IsZero() {
			t.Error("not away while nothing answers")
		}
		db.fail(nil)
		after(6 * time.Second)
		if !p.Database().Since.IsZero() {
			t.Error("still away after it is back")
		}
		before, _ := db.counts()
		after(time.Hour)
		if asked, _ := db.counts(); asked != before {
			t.Errorf("%d questions within an hour after it was back", asked-before)
		}
	})
}

func TestBeats_GoToTheDatabaseRarelyAndOnlyWhileTheBusTakesNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, db, bus, end := following(t)
		defer end()
		bus.fail(errors.New("down"))
		after(time.Minute)
		_, beats := db.counts()
		if beats < 11 || beats > 20 {
			t.Errorf("%d beats within a minute, want one every three to five seconds", beats)
		}
		if got := db.first(); got.Name != "n" || got.Version != "v" || got.Revision != 1 {
			t.Errorf("beat %+v", got)
		}
		bus.fail(nil)
		after(6 * time.Second)
		_, beats = db.counts()
		after(time.Minute)
		if _, now := db.counts(); now != beats {
			t.Errorf("%d beats after the bus takes them again", now-beats)
		}
	})
}

func TestNodes_StayTrueWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	db, redis := newDatabase(t), testredis.Single(t, testredis.Options{})
	p := New(db, "id", Options{Node: "n", Version: "v", Redis: onRedis(t, redis)})
	run(t, p)
	eventually(t, "the first look", func() bool { return p.held.Load() != nil })
	redis.Kill()
	putRule(t, db, "r", 7)
	eventually(t, "the database knows that the node serves the change", func() bool {
		nodes, err := db.Nodes(t.Context())
		want, _ := db.Revision(t.Context())
		return err == nil && len(nodes) == 1 && nodes[0].Revision == want && nodes[0].Version == "v"
	})
}
