package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/engine"
	"github.com/sluicehq/sluice/memstore"
)

// record gives everyone a tier, and notes what was decided.
type record struct {
	tier    string
	decided []string
	hold    chan struct{} // when set, Fill waits for it
	entered chan struct{}
}

func (r *record) Fill(_ string, s *sluice.Subject) {
	if r.hold != nil {
		r.entered <- struct{}{}
		<-r.hold
	}
	s.Tier = r.tier
}

func (r *record) Decided(_ context.Context, req *sluice.Request, d *sluice.Decision, _ time.Time, took time.Duration) {
	if took >= 0 {
		r.decided = append(r.decided, req.Subject.User+" "+req.Subject.Tier+" "+d.Mode.String())
	}
}

func newEngine(t *testing.T, r *record, maxInFlight int) *engine.Engine {
	t.Helper()
	rules, faults := sluice.Compile([]sluice.Rule{{
		Name: "free", Key: []sluice.Dimension{sluice.User}, Match: sluice.Match{Tiers: []string{"free"}}, Limits: []sluice.Limit{sluice.PerHour(2)},
	}})
	for _, f := range faults {
		t.Fatal(f)
	}
	limiter := sluice.New(memstore.New(memstore.Options{}), rules, sluice.Options{})
	return engine.New(limiter, engine.Options{Directory: r, Observer: r, MaxInFlight: maxInFlight})
}

func request(user string) sluice.Request { return sluice.Request{Subject: sluice.Subject{User: user}} }

func TestEngine_DecidesByWhatIsOnRecordAndTellsTheObserver(t *testing.T) {
	t.Parallel()
	r := &record{tier: "free"}
	e := newEngine(t, r, 0)
	if d, err := e.Check(t.Context(), request("a")); err != nil || d.Tightest() == nil {
		t.Fatalf("got %s, %v; want a decision by the rule of the tier", d.Reason(), err)
	}
	decisions := make([]sluice.Decision, 2)
	if err := e.CheckAll(t.Context(), []sluice.Request{request("a"), request("a")}, decisions); err != nil {
		t.Fatal(err)
	}
	if !decisions[0].Allowed || decisions[1].Allowed {
		t.Errorf("got %t and %t, want the second of two refused", decisions[0].Allowed, decisions[1].Allowed)
	}
	if d, _ := e.Peek(t.Context(), request("a")); d.Allowed {
		t.Errorf("peek: got %s, want refused", d.Reason())
	}
	if x, _ := e.Explain(t.Context(), request("a")); len(x.Rules) != 1 || !x.Rules[0].Applies {
		t.Errorf("explain: got %+v, want the rule to apply", x.Rules)
	}
	if err := e.Credit(t.Context(), request("a")); err != nil {
		t.Error(err)
	}
	if d, _ := e.Peek(t.Context(), request("a")); !d.Allowed {
		t.Errorf("after a unit was given back: got %s", d.Reason())
	}
	if err := e.Reset(t.Context(), request("a")); err != nil {
		t.Error(err)
	}
	if d, _ := e.Peek(t.Context(), request("a")); d.Results()[0].Remaining != 2 {
		t.Errorf("after a reset: got %s", d.Reason())
	}
	if len(r.decided) != 3 || r.decided[0] != "a free exact" {
		t.Errorf("the observer was told %q, want three decisions", r.decided)
	}
}

func TestEngine_TurnsAwayWhatIsBeyondItsBound(t *testing.T) {
	t.Parallel()
	r := &record{hold: make(chan struct{}), entered: make(chan struct{})}
	e := newEngine(t, r, 1)
	done := make(chan error)
	go func() {
		_, err := e.Check(t.Context(), request("a"))
		done <- err
	}()
	<-r.entered
	if _, err := e.Check(t.Context(), request("b")); !errors.Is(err, engine.ErrOverloaded) {
		t.Errorf("second: got %v, want ErrOverloaded", err)
	}
	if err := e.CheckAll(t.Context(), []sluice.Request{request("b")}, make([]sluice.Decision, 1)); !errors.Is(err, engine.ErrOverloaded) {
		t.Errorf("batch: got %v, want ErrOverloaded", err)
	}
	if n := e.InFlight(); n != 1 {
		t.Errorf("got %d under way, want 1", n)
	}
	if n := e.Overloaded(); n != 2 {
		t.Errorf("got %d turned away, want 2", n)
	}
	close(r.hold)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := e.InFlight(); n != 0 {
		t.Errorf("got %d under way at the end, want 0", n)
	}
}
