package oracle_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/oracle"
)

func TestCheck_FindsNothingInRightLogs(t *testing.T) {
	t.Parallel()
	shadow := func(c oracle.Charge) oracle.Charge { c.Shadow = true; return c }
	tests := map[string]*story{
		"fixed window, spent twice": about(fixed).each(pass(0, 10, 0), refuse(1, 1, 0), refuse(999*ms, 1, 0), pass(second, 10, 0)),
		"sliding window: at its half, half of the previous one counts": about(sliding).each(
			pass(0, 10, 0), refuse(second, 1, 0), pass(second+500*ms, 5, 0), refuse(second+500*ms+1, 1, 0), pass(second+600*ms, 1, 0)),
		"sliding log: an entry leaves a window after it came, not before": about(logged).each(
			pass(0, 4, 6), pass(500*ms, 6, 0), refuse(second-1, 1, 0), pass(second, 4, 0), refuse(second+1, 1, 0)),
		"token bucket: a unit every tenth of a second": about(bucket).each(
			pass(0, 10, 0), refuse(99_999, 1, 0), pass(100*ms, 1, 0), refuse(100*ms+1, 1, 0), pass(10*second, 10, 0)),
		"a group refused by one limit charges none": about(fixed, logged).
			group(pass(0, 5, 5), on(1, pass(0, 10, 0))).group(pass(1, 5, 5), on(1, refuse(1, 1, 0))).group(pass(2, 5, 0)),
		"a group refused by another shard takes room until it is given back": about(fixed, fixed).acrossShards().
			group(on(1, pass(0, 10, 0))).
			group(pass(10, 8, 10), on(1, refuse(12, 1, 0))).group(refuse(20, 3, 2)).giveBack(0, 30, 10, 8, 8).group(pass(40, 10, 0)),
		"a shadow limit refuses nothing, and is charged only where it passes": about(fixed, fixed).
			group(pass(0, 6, 4), on(1, shadow(pass(0, 6, 4)))).group(pass(1, 2, 2), on(1, shadow(refuse(1, 5, 4)))).
			group(refuse(2, 3, 2), on(1, shadow(pass(2, 1, 4)))),
		"a cost above the limit is only asked for": about(fixed, fixed).acrossShards().
			group(pass(10, 8, 10), on(1, refuse(12, 11, 10))).group(pass(20, 10, 0)),
		"a give-back to a window that is over changes nothing": about(fixed, fixed).acrossShards().
			group(on(1, pass(0, 10, 0))).group(pass(10, 8, 10), on(1, refuse(12, 1, 0))).giveBack(0, second, 10, 8, 0).group(pass(second+1, 10, 0)),
		"a give-back to the previous window counts": about(sliding, sliding).acrossShards().
			group(on(1, pass(0, 10, 0))).group(pass(10, 8, 10), on(1, refuse(12, 1, 0))).giveBack(0, second, 10, 8, 8).group(pass(second+1, 10, 0)),
		"a token bucket gets back the cost less the time since": about(bucket, fixed).acrossShards().
			group(on(1, pass(0, 10, 0))).group(pass(0, 2, 8)).
			group(pass(10, 8, 8), on(1, refuse(12, 1, 0))).giveBack(0, 30, 10, 8*perUnit, 8*perUnit-20*8192).
			group(refuse(31, 9, 8)).group(pass(31, 8, 0)),
	}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if report := oracle.Check(&s.Log, nil); report.Wrong() != 0 {
				t.Errorf("got %d findings, want none:\n%s", report.Wrong(), report)
			}
		})
	}
}

func TestCheck_NamesEachPlantedFault(t *testing.T) {
	t.Parallel()
	lost, lent := pass(0, 1, 9), about(fixed, fixed).acrossShards().group(on(1, pass(0, 10, 0))).group(pass(10, 8, 10), on(1, refuse(12, 1, 0)))
	lost.Lost = true
	forced := about(fixed, fixed).group(pass(0, 1, 9), on(1, refuse(0, 1, 10)))
	for i := range forced.Charges {
		forced.Charges[i].Allowed = true
	}
	local := about(fixed).each(pass(0, 1, 9))
	local.Charges[0].Mode = 2
	late := about(fixed).each(pass(10, 1, 9), pass(20, 1, 8))
	late.Charges[0].Called, late.Charges[0].Returned = start+1000, start+1010

	tests := map[string]struct {
		story *story
		kind  oracle.Kind
		words string
	}{
		"A1": {about(fixed).each(pass(0, 6, 4), pass(999*ms, 5, 0)), oracle.OverAdmitted, "5 units were admitted at this instant, 1 too many in this window (A1)"},
		"A2": {about(logged).each(pass(500*ms, 6, 4), pass(1500*ms-1, 5, 0)), oracle.OverAdmitted, "1 too many in the interval that ends here (A2)"},
		"A3": {about(sliding).each(pass(0, 10, 0), pass(second+500*ms, 6, 0)), oracle.OverAdmitted, "1 too many for this window's count and the previous one's weighted (A3)"},
		"A4": {
			about(bucket).each(pass(0, 10, 0), pass(100*ms, 1, 0), pass(200*ms-1, 1, 0)), oracle.OverAdmitted,
			"1 too many for burst + rate·time in an interval that ends here (A4)",
		},
		"A3 verdict": {
			about(sliding, fixed).group(pass(0, 10, 0)).group(pass(second, 1, 0), on(1, refuse(second, 11, 10))), oracle.PassedWithoutRoom,
			"a charge of 1 passed though only 0 units were left",
		},
		"A6 allowed":    {forced, oracle.WrongGroupVerdict, "allowed though one of its limits refused"},
		"A6 charged":    {about(fixed, fixed).group(pass(0, 4, 6), on(1, refuse(0, 11, 10))).group(pass(1, 6, 0)), oracle.ChargedThoughRefused, "4 of 10 units were charged though another limit refused"},
		"A6 kept":       {lent, oracle.ChargedThoughRefused, "8 units were charged, the group was refused by another shard, and they were never given back"},
		"A6 given back": {about(fixed).each(pass(0, 4, 6)).giveBack(0, 10, 0, 4, 4), oracle.WrongGiveback, "4 were given back for a charge at 1800000000000000 that was not made, or had been"},
		"A6 too much": {about(bucket, fixed).acrossShards().group(on(1, pass(0, 10, 0))).group(pass(10, 8, 10), on(1, refuse(12, 1, 0))).
			giveBack(0, 30, 10, 8*perUnit, 8*perUnit), oracle.WrongGiveback, "6553600000 came back, want 6553436160"},
		"A11":       {about(fixed).each(pass(0, 6, 4), refuse(1, 4, 4)), oracle.FalselyRefused, "a charge of 4 was refused though 4 units were left"},
		"remaining": {about(fixed).each(pass(0, 6, 5)), oracle.WrongRemaining, "a charge of 6 was told that 5 units remain, want 4"},
		"tie":       {about(fixed).each(pass(0, 6, 4), pass(0, 4, 6)), oracle.NoOrder, "2 charges and give-backs of one microsecond, starting with 10 units left: in no order"},
		"real time": {late, oracle.OutOfOrder, "the store put a call made later, at 1800000000001000, before it"},
		"lost":      {about(fixed).each(lost), oracle.Unknown, "no answer came for a charge"},
		"not exact": {local, oracle.NotExact, "decided in mode local"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := oracle.Check(&test.story.Log, nil)
			if report.Counts[test.kind] != 1 || !strings.Contains(report.String(), test.words) {
				t.Errorf("got %d of kind %q, want 1 that says %q, in:\n%s", report.Counts[test.kind], test.kind, test.words, report)
			}
		})
	}
}

func TestCheck_CountsHowMuchWasTooMuch(t *testing.T) {
	t.Parallel()
	report := oracle.Check(&about(fixed).each(pass(0, 10, 0), pass(1, 2, 0), pass(2, 3, 0), pass(second, 11, 0)).Log, nil)
	want := oracle.Excess{Instants: 3, Units: 6, Most: 5}
	if got := report.Over[fixed.Algorithm]; got != want || report.OverUnits() != 6 {
		t.Errorf("25 of 20 units in two windows, and 1 more: got %+v and %d units, want %+v", got, report.OverUnits(), want)
	}
}

func TestCheck_DoesNotReplayWhereAReplyWasLost(t *testing.T) {
	t.Parallel()
	lost := refuse(0, 3, 0)
	lost.Lost = true
	// Whether the 3 were charged nobody knows, so 7 and 4 remaining are both believed; 11 admitted are not.
	report := oracle.Check(&about(fixed).each(lost, pass(1, 3, 4), pass(2, 8, 0)).Log, nil)
	if report.NotReplayed != 1 || report.Counts[oracle.WrongRemaining] != 0 || report.OverUnits() != 1 {
		t.Errorf("want one counter not replayed, and 1 unit too many all the same:\n%s", report)
	}
}

func TestCheck_FindsTheOnlyOrderOfATie(t *testing.T) {
	t.Parallel()
	// Written in an order that no store can have acted in. The refusals tell what they found: one 1 unit, one 8.
	s := about(fixed).each(refuse(5, 2, 1), pass(5, 4, 1), pass(5, 3, 5), refuse(5, 9, 8), pass(5, 2, 8))
	report := oracle.Check(&s.Log, nil)
	if report.Wrong() != 0 || report.Ties != 1 || report.WidestTie != 5 {
		t.Errorf("2, 3 and 4 units of 10, with refusals at 8 and at 1, explain it; got:\n%s", report)
	}
}

func TestCheck_FindsTheOrderOfATieWithAGiveback(t *testing.T) {
	t.Parallel()
	// The 8 lent at 10 come back in the very µs in which 3 are refused, because 2 are left, and then 9 pass.
	s := about(fixed, fixed).acrossShards().group(on(1, pass(0, 10, 0))).group(pass(10, 8, 10), on(1, refuse(12, 1, 0))).
		each(pass(30, 9, 1), refuse(30, 3, 2)).giveBack(0, 30, 10, 8, 8)
	if report := oracle.Check(&s.Log, nil); report.Wrong() != 0 {
		t.Errorf("refused, given back, passed explains it; got:\n%s", report)
	}
}

func TestCheck_ExplainsRefusalsByGivebacks(t *testing.T) {
	t.Parallel()
	s := about(fixed, fixed).acrossShards().group(on(1, pass(0, 10, 0))).group(pass(10, 8, 10), on(1, refuse(12, 1, 0))).
		group(refuse(20, 3, 2)).giveBack(0, 30, 10, 8, 8)
	report := oracle.Check(&s.Log, nil)
	if report.Wrong() != 0 || report.Explained[fixed.Algorithm] != 1 || report.ExplainedOneShard != 1 || report.AcrossShards != 1 {
		t.Errorf("want one refusal explained by what a refused group had taken, and no finding:\n%s", report)
	}
}

func TestCheck_BoundsWhatABucketLosesByGivebacks(t *testing.T) {
	t.Parallel()
	s := about(bucket, fixed).acrossShards().group(on(1, pass(0, 10, 0))).group(pass(0, 10, 0)).
		group(on(1, refuse(100*ms, 1, 0)), pass(100*ms, 1, 1)).giveBack(0, 140*ms, 100*ms, perUnit, perUnit-40*ms*8192)
	report := oracle.Check(&s.Log, nil)
	want := oracle.Loss{Units: 0.4, Micros: float64(40 * ms)}
	if report.Wrong() != 0 || report.Loss != want {
		t.Errorf("a unit lent for 40 ms costs 40 ms of refill: got %+v, want %+v\n%s", report.Loss, want, report)
	}
}

func TestCheck_ComparesWhatIsLeft(t *testing.T) {
	t.Parallel()
	const window = start / second % 8
	const full = (1_800_000_000_000_000*8192 + 3*perUnit) % (1 << 53) // start, untyped: the product needs 64 bits
	long := bucket
	long.Limit, long.Window, long.Burst = 1, time.Hour, 1000
	three := func(s *story) *story { return s.each(pass(0, 3, s.Counters[0].Limit.Capacity()-3)) }
	present := oracle.Leftover{Key: "a", ReadAt: start + 1, Present: true, TTL: time.Second}
	entries, missing, eternal, distant := present, present, found(1, window<<50+3), found(1, window<<50+3)
	entries.Entries = []int64{start - second, start, start, start}
	missing.Present = false
	eternal.TTL, distant.TTL = -1, 2*time.Minute

	tests := map[string]struct {
		story *story
		left  oracle.Leftover
		want  string // empty: nothing
	}{
		"fixed":                {three(about(fixed)), found(1, window<<50+3), ""},
		"fixed, one too few":   {three(about(fixed)), found(1, window<<50+2), "stored is a count of 2 in window"},
		"fixed, other window":  {three(about(fixed)), found(1, (window+1)%8<<50+3), "stored is a count of 3 in window"},
		"sliding":              {three(about(sliding)).each(pass(second, 1, 6)), found(second, (window+1)%8<<50+3<<25+1), ""},
		"sliding, no previous": {three(about(sliding)).each(pass(second, 1, 6)), found(second, (window+1)%8<<50+1), "stored are 1 after 0"},
		"log":                  {three(about(logged)), entries, ""},
		"log, empty":           {three(about(logged)), missing, "the log holds 0 units of time 1800000000000000, want 3"},
		"bucket":               {three(about(bucket)), found(1, full), ""},
		"bucket, a tick":       {three(about(bucket)), found(1, full+1), "1 ticks apart"},
		"bucket, full":         {three(about(bucket)), oracle.Leftover{Key: "a", ReadAt: start + second}, ""},
		"bucket, gone":         {three(about(bucket)), missing, "2457591808 ticks of debt are left"},
		"long bucket":          {three(about(long)), found(1, -1-(start*8+3*3600*second*8)%(1<<53)), ""},
		"gone too early":       {three(about(fixed)), missing, "nothing is stored, but 3 units were charged"},
		"gone in time":         {three(about(fixed)), oracle.Leftover{Key: "a", ReadAt: start + 2*second}, ""},
		"no TTL":               {three(about(fixed)), eternal, "the key never expires"},
		"long TTL":             {three(about(fixed)), distant, "expires in 2m0s, more than two windows and a minute: 1m2s"},
		"not looked at":        {three(about(fixed)), oracle.Leftover{Key: "other"}, "nobody looked"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := oracle.Check(&test.story.Log, []oracle.Leftover{test.left})
			if wrong := report.Wrong(); wrong > 1 || (wrong == 1) != (test.want != "") || !strings.Contains(report.String(), test.want) {
				t.Errorf("left %+v: want %q, got:\n%s", test.left, test.want, report)
			}
		})
	}
}
