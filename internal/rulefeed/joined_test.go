package rulefeed_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/ruledoc"
	"github.com/sluicehq/sluice/internal/rulefeed"
)

// record is a source that was read elsewhere.
type record struct {
	changed chan struct{}

	mu       sync.Mutex
	snapshot rulefeed.Snapshot
	err      error
}

func (r *record) Snapshot(context.Context) (rulefeed.Snapshot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.snapshot, r.err
}

// set makes it have this.
func (r *record) set(s rulefeed.Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.snapshot = s
}

// fail makes it not readable, or readable again.
func (r *record) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

func (r *record) Wait(ctx context.Context) error {
	select {
	case <-r.changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// minute is a rule in a layer of its own.
func minute(name string, limit int64) ruledoc.Rule {
	return ruledoc.Rule{Name: name, Key: []string{"user"}, Layer: name, Limits: []ruledoc.Limit{{Limit: limit, Window: ruledoc.Duration(time.Minute)}}}
}

func document(rules ...ruledoc.Rule) []rulefeed.Text {
	return []rulefeed.Text{{Name: "database", Document: &ruledoc.Document{Rules: rules}}}
}

// limitsOf are the limits of rules by their names.
func limitsOf(set *sluice.RuleSet) map[string]int64 {
	limits := map[string]int64{}
	for r := range set.Rules() {
		limits[r.Name] = r.Limits[0].Limit
	}
	return limits
}

func TestJoined_FilesComeFirstAndTheRevisionIsTheDatabases(t *testing.T) {
	t.Parallel()
	files := &record{snapshot: rulefeed.Snapshot{Revision: 9_000_000, Texts: []rulefeed.Text{{
		Name: "a.toml", Format: ruledoc.TOML, Data: []byte("[[rule]]\nname = \"both\"\nkey = [\"user\"]\nlimits = [{ limit = 1, window = \"1m\" }]\n"),
	}}}}
	db := &record{snapshot: rulefeed.Snapshot{Revision: 42, Texts: document(minute("both", 2), minute("own", 3))}, changed: make(chan struct{}, 1)}
	var rules rulefeed.Rules
	feed := rulefeed.New(rulefeed.NewJoined(files, db), func(r rulefeed.Rules) { rules = r }, rulefeed.Options{})
	if err := feed.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	limits := limitsOf(rules.Set)
	if s := feed.Status(); limits["both"] != 1 || limits["own"] != 3 || s.Revision != 42 || s.Kept != 42 || len(s.Faults) != 1 {
		t.Errorf("limits %v, status %+v, want the file's rule, the database's revision and a fault for the second of a name", limits, s)
	}
	db.snapshot.Revision = 43 // nothing else changed
	if err := feed.Load(t.Context()); err != nil || feed.Status().Revision != 42 || feed.Status().Kept != 43 {
		t.Errorf("after a revision without changes: %v, status %+v, want the same rules, kept at 43", err, feed.Status())
	}
	db.changed <- struct{}{}
	if err := rulefeed.NewJoined(files, db).Wait(t.Context()); err != nil {
		t.Errorf("wait: %v, want the database's change", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := rulefeed.NewJoined(files, db).Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("wait after the end: %v", err)
	}
}

func TestFeed_ARuleThatWasLeftOutElsewhereGoesOnInItsLastGoodForm(t *testing.T) {
	t.Parallel()
	db := &record{snapshot: rulefeed.Snapshot{Revision: 1, Texts: document(minute("a", 1), minute("b", 2))}}
	var set *sluice.RuleSet
	feed := rulefeed.New(db, func(r rulefeed.Rules) { set = r.Set }, rulefeed.Options{})
	if err := feed.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	texts := document(minute("b", 20))
	texts[0].Faults = []ruledoc.Fault{{File: "database", Entry: `rule "a"`, Err: errors.New("cannot be read")}}
	texts[0].LeftOut = []ruledoc.RuleName{{Namespace: "default", Name: "a"}}
	db.snapshot = rulefeed.Snapshot{Revision: 2, Texts: texts}
	if err := feed.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	limits := limitsOf(set)
	if s := feed.Status(); limits["a"] != 1 || limits["b"] != 20 || len(s.Held) != 1 || len(s.Faults) != 1 {
		t.Errorf("limits %v, status %+v, want a as it was, b changed, and the fault", limits, s)
	}
}
