package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
)

// during runs the outages' reports in a bubble whose time is the test's.
func during(t *testing.T, rules []sluice.Rule, story func(t *testing.T, b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, rules...)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.outages.Run(ctx) }()
		story(t, b)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// logged returns level, message and attributes of each line.
func logged(t *testing.T, b *bed) []map[string]any {
	t.Helper()
	var records []map[string]any
	for _, line := range b.log.all() {
		if line == "" {
			continue
		}
		record := map[string]any{}
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("log line %q: %v", line, err)
		}
		records = append(records, record)
	}
	return records
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestOutages_AreToldOnceThenSummedUpThenEnded(t *testing.T) {
	t.Parallel()
	closed := userRule("pay", 1000)
	closed.OnStoreError = sluice.FallClosed
	during(t, []sluice.Rule{userRule("api", 1000), closed}, func(t *testing.T, b *bed) {
		b.check(t, byUser("u_1"))
		pass(time.Minute)
		if got := b.log.String(); got != "" {
			t.Fatalf("logged while all is well: %s", got)
		}
		b.store.fail(context.DeadlineExceeded)
		for range 250 { // 25 s
			b.check(t, byUser("u_1"))
			pass(100 * time.Millisecond)
		}
		records := logged(t, b)
		if len(records) != 3 {
			t.Fatalf("250 decisions without the store wrote %d lines, want 1 and a sum every 10 s:\n%s", len(records), b.log)
		}
		if records[0]["level"] != "WARN" || !strings.Contains(fmt.Sprint(records[0]["error"]), "deadline exceeded") {
			t.Errorf("the first line tells no cause: %v", records[0])
		}
		wantSeries(t, b.scrape(t), "sluice_degraded 1")
		if got := fmt.Sprint(records[1]["rules"]); got != "[default/api local: 100 default/pay closed: 100]" && got != "[default/api local: 101 default/pay closed: 101]" {
			t.Errorf("sum by rule and mode: %s", got)
		}

		b.store.fail(nil)
		for range 60 {
			b.check(t, byUser("u_1"))
			pass(100 * time.Millisecond)
		}
		records = logged(t, b)
		last := records[len(records)-1]
		if len(records) != 4 || last["level"] != "INFO" || !strings.Contains(fmt.Sprint(last["msg"]), "exact") || last["local"] != 250.0 || last["closed"] != 250.0 {
			t.Errorf("after the outage:\n%s", b.log)
		}
		wantSeries(t, b.scrape(t), "sluice_degraded 0")
		if !b.outages.Since().IsZero() || b.outages.LastError() != nil {
			t.Errorf("still since %v, %v", b.outages.Since(), b.outages.LastError())
		}
	})
}

func TestOutages_AnotherOneIsToldAgain(t *testing.T) {
	t.Parallel()
	during(t, []sluice.Rule{userRule("api", 1000)}, func(t *testing.T, b *bed) {
		for range 2 {
			b.store.fail(context.DeadlineExceeded)
			b.check(t, byUser("u_1"))
			pass(time.Second)
			b.store.fail(nil)
			b.check(t, byUser("u_1"))
			pass(7 * time.Second)
		}
		if n := len(logged(t, b)); n != 4 {
			t.Errorf("two outages wrote %d lines, want 4:\n%s", n, b.log)
		}
	})
}

func TestOutages_DoNotEndWithoutProofThatTheStoreAnswers(t *testing.T) {
	t.Parallel()
	during(t, []sluice.Rule{userRule("api", 1000)}, func(t *testing.T, b *bed) {
		b.store.fail(context.DeadlineExceeded)
		b.check(t, byUser("u_1"))
		pass(20 * time.Second) // nobody asks
		b.check(t, sluice.Request{})
		pass(time.Second)
		if b.outages.Since().IsZero() {
			t.Error("the outage ended by a request that no rule matches")
		}
		pass(silentTime)
		if !b.outages.Since().IsZero() {
			t.Error("the outage lasts though nobody asked for long")
		}
	})
}

func TestOutages_LastAsLongAsABreakerIsOpen(t *testing.T) {
	t.Parallel()
	during(t, []sluice.Rule{userRule("api", 1000)}, func(t *testing.T, b *bed) {
		b.outages.Breaker("slot 0", true)
		pass(time.Minute)
		b.check(t, byUser("u_1")) // on another shard, which answers
		pass(time.Minute)
		if b.outages.Since().IsZero() || len(b.outages.OpenBreakers()) != 1 {
			t.Error("the outage ended while a shard's breaker is open")
		}
		wantSeries(t, b.scrape(t), `sluice_breaker_open{shard="slot 0"} 1`, "sluice_degraded 1")
		b.outages.Breaker("slot 0", false)
		pass(2 * time.Second)
		if !b.outages.Since().IsZero() {
			t.Error("the outage lasts though the breaker closed")
		}
		wantSeries(t, b.scrape(t), `sluice_breaker_open{shard="slot 0"} 0`, "sluice_degraded 0")
	})
}

func TestOutages_AnUnreadBeginningBlocksNobody(t *testing.T) {
	t.Parallel()
	b := newBed(t, userRule("api", 1000)) // Run does not run
	b.store.fail(context.DeadlineExceeded)
	for range 10 {
		b.check(t, byUser("u_1"))
		b.outages.on.Store(false)
	}
}

func TestTally_NamesTheTenRulesConcernedMost(t *testing.T) {
	t.Parallel()
	sum := newTally()
	for i := range 15 {
		sum[tallied{seriesName{"default", fmt.Sprintf("rule-%02d", i)}, sluice.Open}] = int64(i + 1)
	}
	got := fmt.Sprint(sum.attrs())
	if !strings.Contains(got, "open=120") || !strings.Contains(got, "rule-14 open: 15") || strings.Contains(got, "rule-04") || !strings.Contains(got, "and 5 more") {
		t.Errorf("got %s", got)
	}
}
