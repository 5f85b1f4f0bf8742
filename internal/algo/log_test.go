package algo

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestLog_AnswersWhatTheTableSays(t *testing.T) {
	t.Parallel()
	three := NewSlidingLog(3, 10*second)
	big := NewSlidingLog(MaxLogLimit, hour)
	for _, c := range []struct {
		name  string
		plan  Plan
		takes [][2]int64 // µs after someday, cost; the last one is what is answered
		want  Answer
	}{
		{"first", three, [][2]int64{{0, 1}}, Answer{Allowed: true, Remaining: 2, Reset: 10 * second}},
		{"two in one instant count twice", three, [][2]int64{{0, 1}, {0, 1}}, Answer{Allowed: true, Remaining: 1, Reset: 10 * second}},
		{"full", three, [][2]int64{{0, 1}, {4 * second, 2}, {5 * second, 1}}, Answer{Reset: 10 * second, Retry: 5 * second}},
		{"two must leave", three, [][2]int64{{0, 1}, {4 * second, 2}, {5 * second, 2}}, Answer{Reset: 10 * second, Retry: 9 * second}},
		{"a microsecond early", three, [][2]int64{{0, 3}, {10*second - 1, 1}}, Answer{Reset: 10 * second, Retry: 1000}},
		{"exactly a window later", three, [][2]int64{{0, 3}, {10 * second, 3}}, Answer{Allowed: true, Reset: 10 * second}},
		{"never", three, [][2]int64{{0, 1}, {0, 4}}, Answer{Remaining: 2, Reset: 10 * second, Retry: Never}},
		{"largest cost", big, [][2]int64{{0, MaxLogCost}}, Answer{Allowed: true, Remaining: MaxLogLimit - MaxLogCost, Reset: hour}},
		{"beyond the largest cost", big, [][2]int64{{0, MaxLogCost + 1}}, Answer{Remaining: MaxLogLimit, Reset: hour, Retry: Never}},
	} {
		var log []Entry
		var got Answer
		for i, take := range c.takes {
			us, cost := someday+take[0], c.plan.Cost(take[1])
			reply := c.plan.LogTake(log, us, cost).Reply
			if reply >= 0 {
				log = c.plan.LogAdd(log, us, cost, uint64(i+1))
			}
			got = c.plan.Answer(reply, cost, us)
		}
		if got != c.want {
			t.Errorf("%s: takes %v: got %+v, want %+v", c.name, c.takes, got, c.want)
		}
	}
}

// logModel remembers every unit ever admitted and counts them anew each time.
type logModel struct {
	times []int64
	ids   []uint64
}

// counted returns how many units count at the time: those younger than a window, and those after it where the clock
// stepped back.
func (m *logModel) counted(us, window int64) int64 {
	n := int64(0)
	for _, at := range m.times {
		if at > us-window {
			n++
		}
	}
	return n
}

// drop forgets what the log has trimmed: a clock that steps back does not bring it back.
func (m *logModel) drop(old func(i int) bool) {
	var kept logModel
	for i := range m.times {
		if !old(i) {
			kept.times, kept.ids = append(kept.times, m.times[i]), append(kept.ids, m.ids[i])
		}
	}
	*m = kept
}

func TestLog_CountsEveryIntervalExactly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.SampledFrom([]int64{100_000, second, minute, year}).Draw(t, "window")
		limits := rapid.SliceOfN(rapid.Int64Range(1, 30), 1, 3).Draw(t, "limits")
		var m logModel
		var log []Entry
		us, newest := someday, int64(0)
		for step := range 60 {
			// The wait of a year's log after a step back by a year still fits its 36 bits.
			us = max(drawTime(t, us, window, window), newest-window)
			newest = max(newest, us)
			p := NewSlidingLog(rapid.SampledFrom(limits).Draw(t, "limit"), window)
			m.drop(func(i int) bool { return m.times[i] <= us-window })
			log = p.LogTrim(log, us)
			if len(m.ids) > 0 && rapid.IntRange(0, 4).Draw(t, "give") == 0 {
				id := rapid.SampledFrom(m.ids).Draw(t, "id")
				before := len(m.ids)
				m.drop(func(i int) bool { return m.ids[i] == id })
				var back int64
				if log, back = LogGive(log, id); int(back) != before-len(m.ids) {
					t.Fatalf("gave back %d units of %d, want %d", back, id, before-len(m.ids))
				}
			}
			cost := p.Cost(drawCost(t, p.Limit))
			n := m.counted(us, window)
			passes := n+cost <= p.Limit
			want := Answer{Allowed: passes, Remaining: max(p.Limit-n, 0)}
			if passes {
				want.Remaining -= cost
			}
			reply := p.LogTake(log, us, cost).Reply
			got := p.Answer(reply, cost, us)
			if got.Allowed != want.Allowed || got.Remaining != want.Remaining || int64(len(log)) != n {
				t.Fatalf("at %d cost %d of %+v with %v: got %+v, want %+v", us, cost, p, m.times, got, want)
			}
			if !passes && cost <= p.Limit {
				checkLogWait(t, &m, &p, us, cost, got.Retry)
			}
			if passes {
				log = p.LogAdd(log, us, cost, uint64(step+1))
				for range cost {
					m.times, m.ids = append(m.times, us), append(m.ids, uint64(step+1))
				}
			}
			if !slices.IsSortedFunc(log, func(a, b Entry) int { return int(a.Time - b.Time) }) {
				t.Fatalf("log is not in order of time: %v", log)
			}
		}
	})
}

// checkLogWait: after the told wait the charge passes, a millisecond earlier it does not.
func checkLogWait(t *rapid.T, m *logModel, p *Plan, us, cost, wait int64) {
	if m.counted(us+wait, p.Window)+cost > p.Limit {
		t.Fatalf("at %d cost %d of %+v with %v: told to wait %d, and then it does not pass", us, cost, *p, m.times, wait)
	}
	if m.counted(us+wait-1000, p.Window)+cost <= p.Limit && wait > 1000 {
		t.Fatalf("at %d cost %d of %+v with %v: told to wait %d, but a millisecond less is enough", us, cost, *p, m.times, wait)
	}
}
