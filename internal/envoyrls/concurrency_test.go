package envoyrls_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/envoyrls"
)

func TestShouldRateLimit_AdmitsExactlyTheLimitToManyCallers(t *testing.T) {
	t.Parallel()
	const limit, callers, calls = 100, 16, 20
	rules := []sluice.Rule{byPattern("user", limit, "descriptor.1"), byPattern("plan=a*,user", limit, "descriptor.2")}
	b := newBed(t, envoyrls.Options{}, rules...)
	var admitted [2]atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for n := range calls {
				response := b.ask(t, entries("user=ann"), entries("plan=ab", "user=ann"), entries("nobody=x"))
				for i := range admitted {
					if response.GetStatuses()[i].GetCode() == ok {
						admitted[i].Add(1)
					}
				}
				if n%5 == 0 { // the same rules in a set of their own: counters stay
					b.limiter.SetRules(compile(t, rules...))
				}
			}
		})
	}
	wg.Wait()
	for i := range admitted {
		if got := admitted[i].Load(); got != limit {
			t.Errorf("descriptor %d: %d of %d calls passed, want %d", i+1, got, callers*calls, limit)
		}
	}
}

func TestNew_ReportsPatternsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	b := newBed(t, envoyrls.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, byPattern("user,", 5))
	expect(t, b.ask(t, entries("user=ann")), ok, 0)
	if got := log.String(); !strings.Contains(got, "the key is missing") || !strings.Contains(got, `rule=user,`) {
		t.Errorf("log is %q", got)
	}
}
