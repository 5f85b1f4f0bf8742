package main

import (
	"net/http"
	"time"

	"github.com/sluicehq/sluice/bench/internal/bar"
)

// result is one fault's run. begin and heal are when the fault and its end were asked for, begun and healed when they
// had taken effect.
type result struct {
	calmFrom, begin, begun, heal, healed time.Time
	answers                              []answer
}

const exact = "exact"

func (r *result) report(b *bar.Bar, fault string) {
	var errors, unlabelled, passed, without, exactCalm, calmAnswers int64
	var slowestCalm, slowest time.Duration
	admitted := map[int64]int64{}
	for _, a := range r.answers {
		if a.err != nil || a.status >= 500 && a.status != http.StatusServiceUnavailable || a.status == http.StatusServiceUnavailable && a.mode != "closed" {
			errors++
			continue
		}
		switch {
		case a.sent.Before(r.calmFrom):
		case a.came.Before(r.begin):
			slowestCalm = max(slowestCalm, a.took)
			calmAnswers++
			if a.mode == exact {
				exactCalm++
			}
		default:
			slowest = max(slowest, a.took)
		}
		inside := a.sent.After(r.begun) && a.came.Before(r.heal)
		if inside {
			without++
			if a.mode == exact || a.mode == "" {
				unlabelled++
			}
			if a.route == "/deny" && a.allowed {
				passed++
			}
		}
		if inside && a.route == "/local" && a.allowed {
			admitted[a.sent.UnixNano()/int64(localWindow)]++
		}
	}
	worst := 0.0
	windows := int64(0)
	for w, n := range admitted {
		if from := time.Unix(0, w*int64(localWindow)); from.After(r.begun) && from.Add(localWindow).Before(r.heal) {
			windows++
			worst = max(worst, float64(n)/localLimit)
		}
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	name := func(s string) string { return fault + ": " + s }
	b.AtLeast(name("requests per second"), float64(len(r.answers))/(warmUp+calm+outage+recovery).Seconds(), 2000, 2000)
	b.Shown(name("slowest decision with Redis, ms"), ms(slowestCalm))
	b.AtMost(name("slowest decision from the fault on, ms"), ms(slowest), ms(deadline+slowestCalm), ms(deadline+slowestCalm))
	b.Exactly(name("errors to clients"), errors, 0)
	b.AtLeast(name("exact of those before the fault"), float64(exactCalm)/float64(max(calmAnswers, 1)), 0.9, 1)
	b.AtLeast(name("answers without Redis"), float64(without), 20_000, 20_000)
	b.Exactly(name("of these not labelled"), unlabelled, 0)
	b.Exactly(name("passed by the deny rule"), passed, 0)
	b.AtLeast(name("windows of the local rule inside the outage"), float64(windows), 4, 4)
	b.AtMost(name("most admitted in one, share of the limit"), worst, 1.5, 1.1)
	b.AtMost(name("exact again after, ms"), ms(r.exactAgain()), 2000, 1000)
}

// slice is how finely recovery is looked at.
const slice = 100 * time.Millisecond

// exactAgain is how long after Redis came back decisions were as exact as before the fault: the end of the last slice with
// a smaller share of exact ones than the worst slice of the calm. On a busy machine a few miss their deadline at any time.
func (r *result) exactAgain() time.Duration {
	calm := shares(r.answers, r.calmFrom, r.begin)
	after := shares(r.answers, r.healed, r.healed.Add(recovery))
	worst := 0.99
	for _, share := range calm {
		worst = min(worst, share)
	}
	back := time.Duration(0)
	for i, share := range after {
		if share < worst {
			back = time.Duration(i+1) * slice
		}
	}
	return back
}

// shares tells for each slice what share of its answers was exact.
func shares(answers []answer, from, to time.Time) map[int]float64 {
	total, good := map[int]int{}, map[int]int{}
	for _, a := range answers {
		if a.came.Before(from) || !a.came.Before(to) {
			continue
		}
		i := int(a.came.Sub(from) / slice)
		total[i]++
		if a.mode == exact {
			good[i]++
		}
	}
	result := map[int]float64{}
	for i, n := range total {
		result[i] = float64(good[i]) / float64(n)
	}
	return result
}
