package httplimit_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/httplimit"
)

// labelled is a rule that applies beside others of its kind.
func labelled(name, label string, limits ...sluice.Limit) sluice.Rule {
	return sluice.Rule{Name: "secret-" + name, Layer: "layer-" + name, Label: label, Limits: limits}
}

func passed(remaining int64, reset time.Duration) sluice.State {
	return sluice.State{Allowed: true, Remaining: remaining, ResetAfter: reset}
}

func refused(retry, reset time.Duration) sluice.State {
	return sluice.State{RetryAfter: retry, ResetAfter: reset}
}

func TestWriteHeaders_TellsWhatTheDecisionSays(t *testing.T) {
	t.Parallel()
	shadow := labelled("shadow", "shadow", sluice.PerMinute(1))
	shadow.Action = sluice.Shadow
	longer := labelled("longer", "longer", sluice.PerMinute(5))
	longer.Response.RetryAfter = 9 * time.Second

	for _, tc := range []struct {
		name   string
		rules  []sluice.Rule
		states []sluice.State
		want   map[string]string
	}{
		{
			"an allowed request",
			[]sluice.Rule{labelled("a", "user", sluice.PerMinute(100))},
			[]sluice.State{passed(99, 29*time.Second+1)},
			map[string]string{
				"RateLimit-Policy": `"user";q=100;w=60`, "RateLimit": `"user";r=99;t=30`,
				"X-RateLimit-Limit": "100", "X-RateLimit-Remaining": "99", "X-RateLimit-Reset": "1800000030", "X-RateLimit-Cost": "1",
				"Retry-After": "", "Cache-Control": "", "Sluice-Mode": "",
			},
		},
		{
			"a refused request",
			[]sluice.Rule{labelled("a", "user", sluice.PerMinute(5))},
			[]sluice.State{refused(1500*time.Millisecond, 40*time.Second)},
			map[string]string{
				"RateLimit": `"user";r=0;t=2`, "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1800000002",
				"Retry-After": "2", "Cache-Control": "no-store",
			},
		},
		{
			"a retry within the second",
			[]sluice.Rule{labelled("a", "user", sluice.PerMinute(5))},
			[]sluice.State{refused(0, 0)},
			map[string]string{"RateLimit": `"user";r=0;t=0`, "X-RateLimit-Reset": "1800000001", "Retry-After": "1"},
		},
		{
			"a rule that lengthens the retry",
			[]sluice.Rule{longer},
			[]sluice.State{refused(2*time.Second, time.Minute)},
			map[string]string{"RateLimit": `"longer";r=0;t=2`, "Retry-After": "9"},
		},
		{
			"a cost no wait can help",
			[]sluice.Rule{labelled("a", "user", sluice.PerMinute(5))},
			[]sluice.State{{Remaining: 5, RetryAfter: sluice.Never}},
			map[string]string{"RateLimit": `"user";r=5;t=0`, "Retry-After": "", "Cache-Control": "no-store"},
		},
		{
			"one of two refuses",
			[]sluice.Rule{labelled("a", "a", sluice.PerMinute(5)), labelled("b", "b", sluice.PerHour(50))},
			[]sluice.State{refused(3*time.Second, 9*time.Second), passed(1, 1000*time.Second)},
			map[string]string{
				"RateLimit-Policy": `"a";q=5;w=60, "b";q=50;w=3600`, "RateLimit": `"a";r=0;t=3, "b";r=1;t=1000`,
				"X-RateLimit-Limit": "5", "Retry-After": "3",
			},
		},
		{
			"the smaller share decides X-RateLimit",
			[]sluice.Rule{labelled("a", "a", sluice.PerMinute(5)), labelled("b", "b", sluice.PerHour(50))},
			[]sluice.State{passed(4, time.Second), passed(6, time.Second)},
			map[string]string{"X-RateLimit-Limit": "50", "X-RateLimit-Remaining": "6"},
		},
		{
			"limits of one label",
			[]sluice.Rule{
				labelled("a", "a", sluice.PerSecond(1), sluice.PerMinute(2), sluice.PerHour(3)), labelled("b", "a-2", sluice.PerDay(4)),
			},
			[]sluice.State{passed(1, 0), passed(2, 0), passed(3, 0), passed(4, 0)},
			map[string]string{"RateLimit": `"a";r=1;t=0, "a-3";r=2;t=0, "a-4";r=3;t=0, "a-2";r=4;t=0`},
		},
		{
			"a window below a second",
			[]sluice.Rule{labelled("a", "a", sluice.Per(5, 999*time.Millisecond))},
			[]sluice.State{passed(4, 0)},
			map[string]string{"RateLimit-Policy": `"a";q=5`},
		},
		{
			"a window between two seconds",
			[]sluice.Rule{labelled("a", "a", sluice.Per(5, 1100*time.Millisecond))},
			[]sluice.State{passed(4, 0)},
			map[string]string{"RateLimit-Policy": `"a";q=5;w=2`},
		},
		{
			"a bucket's window is the time it takes to fill",
			[]sluice.Rule{labelled("a", "a", sluice.Bucket(10, time.Second, 25))},
			[]sluice.State{passed(24, 0)},
			map[string]string{"RateLimit-Policy": `"a";q=25;w=3`, "X-RateLimit-Limit": "25"},
		},
		{
			"a limit beyond the integers of structured fields",
			[]sluice.Rule{labelled("a", "a", sluice.Limit{Algorithm: sluice.FixedWindow, Limit: sluice.MaxFixedLimit, Window: time.Hour})},
			[]sluice.State{passed(sluice.MaxFixedLimit, 0)},
			map[string]string{"RateLimit-Policy": `"a";q=999999999999999;w=3600`, "RateLimit": `"a";r=999999999999999;t=0`},
		},
		{
			"a store that counts wrongly",
			[]sluice.Rule{labelled("a", "a", sluice.PerSecond(5))},
			[]sluice.State{passed(7, -time.Second)},
			map[string]string{"RateLimit": `"a";r=5;t=0`, "X-RateLimit-Remaining": "5", "X-RateLimit-Reset": "1800000001"},
		},
		{
			"a shadow rule beside another",
			[]sluice.Rule{labelled("a", "a", sluice.PerSecond(5)), shadow},
			[]sluice.State{passed(4, 0), {RetryAfter: time.Minute, Mode: sluice.Local}},
			map[string]string{"RateLimit": `"a";r=4;t=0`, "X-RateLimit-Limit": "5", "Retry-After": "", "Sluice-Mode": ""},
		},
		{
			"leases are no weakness",
			[]sluice.Rule{labelled("a", "a", sluice.PerSecond(5))},
			[]sluice.State{{Allowed: true, Mode: sluice.Leased}},
			map[string]string{"Sluice-Mode": ""},
		},
		{
			"the weakest mode",
			[]sluice.Rule{labelled("a", "a", sluice.PerSecond(5)), labelled("b", "b", sluice.PerSecond(5))},
			[]sluice.State{{Allowed: true, Mode: sluice.Open}, {Allowed: true, Mode: sluice.Local}},
			map[string]string{"Sluice-Mode": "open"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := decisionOf(t, tc.rules, tc.states...)
			h := http.Header{}
			httplimit.WriteHeaders(h, &d, 0, epoch)
			wantFields(t, h, tc.want)
			for name, values := range h {
				if strings.Contains(strings.Join(values, ""), "secret") {
					t.Errorf("%s: %q has a rule's name", name, values)
				}
			}
		})
	}
}

func TestWriteHeaders_SaysNothingWithoutLimits(t *testing.T) {
	t.Parallel()
	shadow := labelled("shadow", "shadow", sluice.PerMinute(1))
	shadow.Action = sluice.Shadow
	for name, d := range map[string]sluice.Decision{
		"no rule":       {Allowed: true, Cause: sluice.NoRule},
		"exempt":        {Allowed: true, Cause: sluice.Exempted},
		"disabled":      {Allowed: true, Cause: sluice.Disabled},
		"shadow, spent": decisionOf(t, []sluice.Rule{shadow}, sluice.State{Mode: sluice.Local, RetryAfter: time.Second}),
	} {
		h := http.Header{}
		if httplimit.WriteHeaders(h, &d, 0, epoch); len(h) > 0 {
			t.Errorf("%s: %v, want no header", name, h)
		}
	}
}

func TestWriteHeaders_SpeaksOnlyTheDialectsAskedFor(t *testing.T) {
	t.Parallel()
	d := decisionOf(t, []sluice.Rule{labelled("a", "a", sluice.PerSecond(5))}, sluice.State{Mode: sluice.Local, RetryAfter: time.Second})
	for _, tc := range []struct {
		dialects httplimit.Dialects
		want     string
	}{
		{0, "Cache-Control Ratelimit Ratelimit-Policy Retry-After Sluice-Mode X-Ratelimit-Cost X-Ratelimit-Limit X-Ratelimit-Remaining X-Ratelimit-Reset"},
		{httplimit.IETF, "Cache-Control Ratelimit Ratelimit-Policy Retry-After Sluice-Mode"},
		{httplimit.XRateLimit, "Cache-Control Retry-After Sluice-Mode X-Ratelimit-Cost X-Ratelimit-Limit X-Ratelimit-Remaining X-Ratelimit-Reset"},
		{httplimit.None, "Cache-Control Retry-After"},
	} {
		h := http.Header{}
		httplimit.WriteHeaders(h, &d, tc.dialects, epoch)
		if got := names(h); got != tc.want {
			t.Errorf("dialects %b: fields %s, want %s", tc.dialects, got, tc.want)
		}
	}
}

func TestWriteHeaders_SpreadsRetriesByATenthAtMost(t *testing.T) {
	t.Parallel()
	l := limiterOf(t, fakeStore{refused(100*time.Second, time.Hour)}, labelled("a", "a", sluice.PerHour(5)))
	seen := map[string]bool{}
	for range 2000 { // decision ids are random: fewer might miss one of the eleven
		d, err := l.Check(t.Context(), sluice.Request{})
		if err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		httplimit.WriteHeaders(h, &d, 0, epoch)
		seen[h.Get("Retry-After")] = true
	}
	if len(seen) != 11 || !seen["100"] || !seen["110"] {
		t.Errorf("Retry-After of 2000 refusals for 100 s: %v, want each of 100 to 110", seen)
	}
}

func TestWriteHeaders_LeavesRoomForTheHandlersOwn(t *testing.T) {
	t.Parallel()
	d := decisionOf(t, []sluice.Rule{labelled("a", "a", sluice.PerSecond(5))}, passed(4, 0))
	h := http.Header{"Ratelimit": {"stale"}}
	httplimit.WriteHeaders(h, &d, 0, epoch)
	h.Add("RateLimit-Policy", "more")
	if got := h.Values("RateLimit"); len(got) != 1 || got[0] != `"a";r=4;t=0` {
		t.Errorf("RateLimit: %q after adding to RateLimit-Policy", got)
	}
}

func TestWriteHeaders_TellTheModeWhereNobodyCouldBeAsked(t *testing.T) {
	t.Parallel()
	d, err := sluice.RemoteDecision(sluice.Decision{Allowed: true, Mode: sluice.Open}, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	httplimit.WriteHeaders(h, &d, 0, time.Now())
	if got := h.Get("Sluice-Mode"); got != "open" {
		t.Errorf("got Sluice-Mode %q, want open: a decision that nobody made must say so", got)
	}
	if got := d.Reason(); got != "allowed: the limiter does not answer (open)" {
		t.Errorf("got reason %q", got)
	}
}
