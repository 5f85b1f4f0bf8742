package rulefeed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
)

// fakeSource has a snapshot that tests replace.
type fakeSource struct {
	mu    sync.Mutex
	snap  Snapshot
	err   error
	waits []error // what Wait returns next, nil when it is empty
	calls int
	ready chan struct{}
}

func newFake(text string) *fakeSource {
	f := &fakeSource{ready: make(chan struct{}, 1)}
	f.set(text)
	return f
}

func (f *fakeSource) set(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.snap, f.err = Snapshot{Texts: []Text{{Name: "a.toml", Data: []byte(text)}}}, nil
	select {
	case f.ready <- struct{}{}:
	default:
	}
}

func (f *fakeSource) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *fakeSource) Snapshot(context.Context) (Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	return f.snap, f.err
}

func (f *fakeSource) Wait(ctx context.Context) error {
	f.mu.Lock()
	if len(f.waits) > 0 {
		err := f.waits[0]
		f.waits = f.waits[1:]
		f.mu.Unlock()
		return err
	}
	f.mu.Unlock()
	select {
	case <-f.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func rule(name string, limit int) string {
	return fmt.Sprintf("[[rule]]\nname = %q\nkey = [\"ip\"]\nlayer = %q\nlimits = [{ limit = %d, window = \"1m\" }]\n", name, name, limit)
}

// published gathers what a feed hands on.
type published struct {
	mu  sync.Mutex
	all []Rules
}

func (p *published) publish(r Rules) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, r)
}

func (p *published) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.all)
}

// names lists the rules published last, as name=limit.
func (p *published) names() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for r := range p.all[len(p.all)-1].Set.Rules() {
		names = append(names, fmt.Sprintf("%s=%d", r.Name, r.Limits[0].Limit))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestLoad_RefusesToStartWithATextItCannotUnderstand(t *testing.T) {
	t.Parallel()
	var p published
	f := New(newFake("[[rule]\n"), p.publish, Options{})
	var broken *LoadError
	if err := f.Load(t.Context()); !errors.As(err, &broken) || !strings.Contains(err.Error(), "a.toml:1:") || !strings.Contains(err.Error(), "[[rule]") {
		t.Errorf("Load: %v, want the fault with its line quoted", err)
	}
	if err := f.Run(t.Context()); !errors.As(err, &broken) {
		t.Errorf("Run: %v, want the same", err)
	}
	if s := f.Status(); p.count() != 0 || s.Revision != 0 || !s.Stale {
		t.Errorf("published %d, status %+v", p.count(), s)
	}
}

func TestLoad_StartsWithoutTheFaultyRules(t *testing.T) {
	t.Parallel()
	var p published
	f := New(newFake(rule("a", 1)+rule("b", 0)+"[[rule]]\nname = \"c\"\nprioritty = 1\n"), p.publish, Options{})
	if err := f.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := p.names(); got != "a=1" {
		t.Errorf("rules %s, want a alone", got)
	}
	if s := f.Status(); s.Stale || s.Rules != 1 || len(s.Faults) != 2 || s.Revision != 1 || s.LoadedAt.IsZero() || s.Digest == "" {
		t.Errorf("status %+v", s)
	}
}

func TestLoad_KeepsTheLastGoodRulesWhenATextIsBroken(t *testing.T) {
	t.Parallel()
	var p published
	var log bytes.Buffer
	var observed []Status
	source := newFake(rule("a", 1))
	f := New(source, p.publish, Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Observe: func(s Status) { observed = append(observed, s) }})
	load := func(wantErr bool) Status {
		t.Helper()
		if err := f.Load(t.Context()); (err != nil) != wantErr {
			t.Fatalf("Load: %v", err)
		}
		return f.Status()
	}
	load(false)

	source.set(rule("a", 2) + "[[rule]\n")
	s := load(true)
	load(true)
	if !s.Stale || s.Revision != 1 || len(s.Faults) != 1 || s.Faults[0].Line != 6 || s.LastError == "" || s.LastErrorAt.IsZero() || p.count() != 1 {
		t.Errorf("broken: status %+v, published %d", s, p.count())
	}
	if got := strings.Count(log.String(), "rules not loaded: revision 1 goes on"); got != 1 {
		t.Errorf("told %d times, want once, in\n%s", got, log.String())
	}

	source.fail(errors.New("disk on fire"))
	load(true)
	if s := load(true); !s.Stale || s.LastError != "disk on fire" || strings.Count(log.String(), "disk on fire") != 1 {
		t.Errorf("unreadable: status %+v, log\n%s", s, log.String())
	}

	source.set(rule("a", 1)) // as it was
	if s := load(false); s.Stale || s.Revision != 1 || len(s.Faults) != 0 || s.LastError == "" || p.count() != 1 {
		t.Errorf("restored: status %+v, published %d", s, p.count())
	}
	source.set(rule("a", 3))
	if s := load(false); s.Stale || s.Revision != 2 || p.names() != "a=3" {
		t.Errorf("new: status %+v, rules %s", s, p.names())
	}
	if len(observed) != 5 {
		t.Errorf("observed %d loads, want each that found something new: 5", len(observed))
	}
}

func TestLoad_GoesOnWithTheLastGoodFormOfARuleThatWasSpoilt(t *testing.T) {
	t.Parallel()
	var p published
	source := newFake(rule("a", 1) + rule("b", 1))
	f := New(source, p.publish, Options{})
	for _, step := range []struct{ text, rules, held string }{
		{rule("a", 1) + rule("b", 1), "a=1 b=1", ""},
		{rule("a", 0) + rule("b", 2), "a=1 b=2", "default/a"}, // a is spoilt, b acts
		{rule("a", -1) + rule("b", 3), "a=1 b=3", "default/a"},
		{rule("b", 3), "b=3", ""}, // taken out on purpose
		{rule("a", 0) + rule("b", 3), "b=3", ""},
		{"", "", ""},
	} {
		source.set(step.text)
		if err := f.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := f.Status(); p.names() != step.rules || strings.Join(s.Held, " ") != step.held {
			t.Errorf("after %q: rules %q held %q, want %q and %q", step.text, p.names(), s.Held, step.rules, step.held)
		}
	}
}

func TestLoad_NumbersRevisionsUpwards(t *testing.T) {
	t.Parallel()
	var p published
	source := newFake("")
	f := New(source, p.publish, Options{})
	for i, given := range []sluice.Revision{100, 50, 0, 200} {
		source.set(rule("a", i+1))
		source.snap.Revision = given
		if err := f.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var got []sluice.Revision
	for _, r := range p.all {
		got = append(got, r.Set.Revision())
	}
	if want := []sluice.Revision{100, 101, 102, 200}; !slices.Equal(got, want) {
		t.Errorf("revisions %v, want %v", got, want)
	}
}

func TestLoad_PassesOverChangesOfTheEmbeddingFileThatAreNotRules(t *testing.T) {
	t.Parallel()
	var p published
	source := newFake("")
	f := New(source, p.publish, Options{})
	for _, text := range []string{"node = \"a\"\n" + rule("a", 1), "node = \"b\"\n\n" + rule("a", 1), "node = \"b\"\n" + rule("a", 2)} {
		source.snap = Snapshot{Texts: []Text{{Name: "sluice.toml", Data: []byte(text), Embedded: true}}}
		if err := f.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if p.count() != 2 {
		t.Errorf("published %d times, want 2", p.count())
	}
	source.snap.Texts[0].Data = []byte("token = \"very secret\nnode")
	if err := f.Load(t.Context()); err == nil || strings.Contains(err.Error(), "very secret") {
		t.Errorf("Load: %v, want an error that quotes nothing", err)
	}
}

func TestRun_LoadsWhatChangesAndSurvivesWhatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p published
		source := newFake(rule("a", 1))
		source.waits = []error{errors.New("cannot watch")}
		f := New(source, p.publish, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx) }()

		time.Sleep(10 * retryWait) //nolint:forbidigo // the bubble's clock
		source.set(rule("a", 2))
		synctest.Wait()
		if p.names() != "a=2" {
			t.Errorf("rules %s, want the changed one", p.names())
		}
		source.fail(errors.New("gone for a while"))
		source.ready <- struct{}{}
		time.Sleep(2 * retryWait) //nolint:forbidigo // the bubble's clock
		source.set("[[rule]\n")
		time.Sleep(2 * retryWait) //nolint:forbidigo // the bubble's clock
		source.set(rule("a", 3))
		time.Sleep(2 * retryWait) //nolint:forbidigo // the bubble's clock
		if s := f.Status(); p.names() != "a=3" || s.Stale {
			t.Errorf("rules %s, status %+v", p.names(), s)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	})
}
