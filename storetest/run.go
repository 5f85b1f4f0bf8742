// Package storetest is what every sluice.Store must do: a suite of promises, most of them written as traces
// (testdata/*.trace), run unchanged on each store. A store's own test is a few lines:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Fixture { … })
//	}
package storetest

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
)

// Fixture is a store under test and the clock it answers by.
type Fixture struct {
	Store sluice.Store
	// SetTime moves the store's clock, also backwards, and stops it there.
	SetTime func(time.Time)
}

//go:embed testdata/*.trace
var traces embed.FS

// Run runs the whole suite. open is called once; the suite uses keys of its own for each test and runs them one after
// the other, because they share the store's clock.
func Run(t *testing.T, open func(t *testing.T) Fixture) {
	f := open(t)
	files, err := fs.Glob(traces, "testdata/*.trace")
	if err != nil || len(files) == 0 {
		t.Fatalf("no traces: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(path.Base(file), ".trace"), func(t *testing.T) {
			text, err := traces.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			RunTrace(t, f, file, string(text))
		})
	}
	for _, p := range promises {
		t.Run(p.name, func(t *testing.T) {
			f.SetTime(defaultStart)
			p.check(t, f)
		})
	}
}

// RunTrace runs one trace; name is what failures call it.
func RunTrace(t *testing.T, f Fixture, name, text string) {
	t.Helper()
	tr, err := parseTrace(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	p := &player{Fixture: f, namespace: freshNamespace(), limits: map[string]step{}, taken: map[string][]sluice.Charge{}}
	for _, s := range tr.steps {
		if s.verb == "limit" {
			p.limits[s.name] = s
			continue
		}
		f.SetTime(tr.start.Add(s.at))
		if err := p.play(t.Context(), s); err != nil {
			t.Fatalf("%s:%d: %s\n%v", name, s.line, s.text, err)
		}
	}
}

// freshNamespace keeps the counters of one test apart from all others, also of earlier runs on the same server.
func freshNamespace() string {
	return fmt.Sprintf("test-%d-%d", time.Now().UnixNano(), namespaces.Add(1))
}

var namespaces atomic.Int64

// player carries a trace's names while it runs.
type player struct {
	Fixture
	namespace string
	limits    map[string]step
	taken     map[string][]sluice.Charge
}

func (p *player) play(ctx context.Context, s step) error {
	if s.verb == "give" {
		charges, ok := p.taken[s.name]
		if !ok {
			return fmt.Errorf("nothing was taken as %q", s.name)
		}
		p.Store.Give(ctx, charges)
		return nil
	}
	group, err := p.charges(s)
	if err != nil {
		return err
	}
	switch s.verb {
	case "reset":
		p.Store.Reset(ctx, group)
		return nil
	case "peek":
		p.Store.Peek(ctx, [][]sluice.Charge{group})
	case "take":
		if s.times > 0 {
			return p.repeat(ctx, s, group)
		}
		p.Store.Take(ctx, [][]sluice.Charge{group})
		if s.name != "" {
			p.taken[s.name] = group
		}
	}
	for i := range s.expect {
		if err := s.expect[i].check(group[i].State); err != nil {
			return fmt.Errorf("charge %d: %w", i+1, err)
		}
	}
	return nil
}

func (p *player) repeat(ctx context.Context, s step, group []sluice.Charge) error {
	admitted := 0
	for range s.times {
		p.Store.Take(ctx, [][]sluice.Charge{group})
		ok, err := taken(group)
		if err != nil {
			return err
		}
		if ok {
			admitted++
		}
	}
	if admitted != s.admits {
		return fmt.Errorf("got admitted=%d of %d, want %d", admitted, s.times, s.admits)
	}
	return nil
}

func (p *player) charges(s step) ([]sluice.Charge, error) {
	group := make([]sluice.Charge, len(s.charges))
	for i, c := range s.charges {
		l, ok := p.limits[c.limit]
		if !ok {
			return nil, fmt.Errorf("no limit %q", c.limit)
		}
		group[i] = sluice.Charge{
			Key:       userKey(p.namespace, c.limit, c.key),
			Limit:     l.limit,
			MaxDelay:  l.delay,
			Cost:      c.cost,
			Shadow:    c.shadow,
			Receipted: s.name != "",
		}
	}
	return group, nil
}

func userKey(namespace, rule, user string) sluice.Key {
	return sluice.Key{Namespace: namespace, Rule: rule, Parts: []sluice.Part{{Dimension: sluice.User, Value: user}}}
}

// taken tells whether a group was taken.
func taken(group []sluice.Charge) (bool, error) {
	ok := true
	for i := range group {
		if err := group[i].State.Err; err != nil {
			return false, err
		}
		ok = ok && (group[i].State.Allowed || group[i].Shadow)
	}
	return ok, nil
}

func (e expectation) check(s sluice.State) error {
	if s.Err != nil {
		return fmt.Errorf("got error %w", s.Err)
	}
	got := map[string]string{
		"remaining": strconv.FormatInt(s.Remaining, 10),
		"reset":     s.ResetAfter.String(),
		"retry":     s.RetryAfter.String(),
		"delay":     s.Delay.String(),
	}
	if s.RetryAfter == sluice.Never {
		got["retry"] = "never"
	}
	verdict := map[bool]string{true: "allow", false: "refuse"}
	summary := fmt.Sprintf("got %s remaining=%s reset=%s retry=%s delay=%s", verdict[s.Allowed], got["remaining"], got["reset"], got["retry"], got["delay"])
	if s.Allowed != e.allow {
		return fmt.Errorf("%s, want %s", summary, verdict[e.allow])
	}
	for name, want := range e.fields {
		if d, err := time.ParseDuration(want); err == nil && name != "remaining" {
			want = d.String()
		}
		if got[name] != want {
			return fmt.Errorf("%s, want %s=%s", summary, name, want)
		}
	}
	return nil
}
