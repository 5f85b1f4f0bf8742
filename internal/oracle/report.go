package oracle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
)

// Report is what Check found.
type Report struct {
	Decisions, Allowed int
	// AcrossShards is how many decisions took several steps of the store.
	AcrossShards       int
	Charges, Givebacks int
	// Algorithms tells how many charges went to each, by sluice.Algorithm.
	Algorithms [4]Share
	// Over is what was admitted beyond the limits, by sluice.Algorithm.
	Over [4]Excess
	// Explained counts refusals that were right at the time, but would have passed had no refused group ever taken
	// anything: give-backs were under way, or a token bucket had got back less than the whole charge. By
	// sluice.Algorithm. They are no false refusals, as the store had no room; but the callers would say they are.
	Explained [4]int
	// ExplainedOneShard counts those of them whose own group one step decided: it was refused for what other groups,
	// which went across shards, had taken.
	ExplainedOneShard int
	// Loss is the most that a token bucket was short of at the end because of give-backs.
	Loss Loss
	// Ties is how many instants had several events on one counter, WidestTie the most.
	Ties, WidestTie int
	// Leftovers is how many counters were compared with what the store held in the end, LeftoverValues how many of them
	// it still held, NotReplayed how many counters a lost reply spoilt.
	Leftovers, LeftoverValues, NotReplayed int
	// Counts is the number of findings of each kind.
	Counts [Kinds]int

	findings [Kinds][]Finding
}

// Share is the charges of one algorithm and those its own limits refused.
type Share struct{ Charges, Refused int }

// Percent is the refused share.
func (s Share) Percent() float64 {
	if s.Charges == 0 {
		return 0
	}
	return 100 * float64(s.Refused) / float64(s.Charges)
}

// Excess is admitted beyond a limit: at how many instants, units in sum, and the most at once.
type Excess struct{ Instants, Units, Most int64 }

// Loss is what give-backs cost a token bucket: units, and the same as refill time in µs.
type Loss struct{ Units, Micros float64 }

// Kind is a way of being wrong.
type Kind uint8

// The kinds, each with the promise of docs/promises.md that it breaks.
const (
	OverAdmitted         Kind = iota // A1, A2, A3, A4: admitted beyond the limit
	PassedWithoutRoom                // A3: said to pass where the model has no room
	FalselyRefused                   // A11: refused where the model has room
	ChargedThoughRefused             // A6: a refused group left a charge behind
	WrongGroupVerdict                // A6: allowed ⇔ no limit refused
	WrongRemaining                   // C4: told other remaining units than there were
	NoOrder                          // 7.3: no order explains what an instant's charges were told
	WrongGiveback                    // A6: given back twice, without a charge, too much or too little
	OutOfOrder                       // 7.4: decided before an earlier caller's, though called after its return
	WrongLeftover                    // the value left in the store is not the replay's
	WrongTTL                         // C5: a key without end of life, or with one too far away
	Unknown                          // B5: lost replies
	NotExact                         // C4: decided by something else than the store
	// Kinds is how many there are.
	Kinds
)

var kindNames = [Kinds]string{
	"over-admission", "passed without room", "false refusal", "charged though refused", "wrong group verdict", "wrong remaining",
	"no order explains", "wrong give-back", "out of real-time order", "wrong leftover", "wrong TTL", "unknown outcome", "not exact",
}

// String names the kind for people.
func (k Kind) String() string { return kindNames[k] }

// Finding is one thing that was wrong.
type Finding struct {
	Kind    Kind
	Counter string // its key
	Limit   sluice.Limit
	Time    int64 // the store's, µs
	Group   GroupID
	Text    string
}

// String says it in one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s: counter %s, %s, at %d, group %s: %s", f.Kind, f.Counter, f.Limit, f.Time, f.Group, f.Text)
}

// findingsKept of each kind, the earliest; the rest is only counted. One fault often brings thousands after it, of
// which the first tell the cause.
const findingsKept = 5

func (r *Report) add(kind Kind, c *Counter, at int64, group GroupID, format string, args ...any) {
	r.Counts[kind]++
	list := r.findings[kind]
	if len(list) == findingsKept && at >= list[findingsKept-1].Time {
		return
	}
	i, _ := slices.BinarySearchFunc(list, at, func(f Finding, at int64) int {
		if f.Time <= at {
			return -1
		}
		return 1
	})
	list = slices.Insert(list, i, Finding{kind, c.Key, c.Limit, at, group, fmt.Sprintf(format, args...)})
	r.findings[kind] = list[:min(len(list), findingsKept)]
}

// Findings returns the earliest of each kind.
func (r *Report) Findings() []Finding { return slices.Concat(r.findings[:]...) }

// OverUnits is the sum over all algorithms of what was admitted beyond the limits.
func (r *Report) OverUnits() int64 {
	var sum int64
	for _, e := range r.Over {
		sum += e.Units
	}
	return sum
}

// Wrong is the number of findings of all kinds: 0 means that the store did what it promises.
func (r *Report) Wrong() int {
	n := 0
	for _, count := range r.Counts {
		n += count
	}
	return n
}

// String is the whole report, a line for each figure and finding.
func (r *Report) String() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%d decisions (%d allowed, %d across shards), %d charges, %d give-backs", r.Decisions, r.Allowed, r.AcrossShards, r.Charges, r.Givebacks)
	for a, share := range r.Algorithms {
		line("%s: %d charges, %.1f%% refused (%d explained by give-backs); over-admitted %d units, at most %d at once",
			sluice.Algorithm(a), share.Charges, share.Percent(), r.Explained[a], r.Over[a].Units, r.Over[a].Most)
	}
	line("refusals explained by give-backs whose own group lies in one shard: %d", r.ExplainedOneShard)
	line("largest loss of a token bucket by give-backs: %.4g units, %.0f µs of refill", r.Loss.Units, r.Loss.Micros)
	line("%d instants with several charges of a counter, at most %d; %d leftovers compared, %d of them still there",
		r.Ties, r.WidestTie, r.Leftovers, r.LeftoverValues)
	for k, count := range r.Counts {
		if count > 0 {
			line("%s: %d", Kind(k), count)
		}
	}
	for _, f := range r.Findings() {
		line("  %s", f)
	}
	return b.String()
}
