package oracle

import (
	"fmt"
	"slices"
)

// logModel: at most limit units in any interval (t-window, t].
type logModel struct {
	limit, window int64
	entries       []logEntry // by time
	used          int64      // the sum of their units
}

type logEntry struct{ time, units int64 }

func (m *logModel) grain() int64 { return 1 }

func (m *logModel) room(t int64) int64 {
	n := 0
	for n < len(m.entries) && m.entries[n].time <= t-m.window {
		m.used -= m.entries[n].units
		n++
	}
	m.entries = m.entries[n:]
	return m.limit - m.used
}

func (m *logModel) charge(t, units int64) {
	m.entries = append(m.entries, logEntry{t, units})
	m.used += units
}

// forgive removes the entries of one charge. Those that no longer count are gone already.
func (m *logModel) forgive(_, taken, units int64) int64 {
	i := slices.Index(m.entries, logEntry{taken, units})
	if i < 0 {
		return 0
	}
	m.entries = slices.Delete(m.entries, i, i+1)
	m.used -= units
	return units
}

// misfit compares how many units still count, instant by instant. Entries that no longer count stay in the store until
// somebody asks, and are not looked at.
func (m *logModel) misfit(found *Leftover) string {
	want, got := map[int64]int64{}, map[int64]int64{}
	m.room(found.ReadAt)
	for _, e := range m.entries {
		want[e.time] += e.units
	}
	for _, t := range found.Entries {
		if t > found.ReadAt-m.window {
			got[t]++
		}
	}
	for t, units := range want {
		if got[t] != units {
			return fmt.Sprintf("the log holds %d units of time %d, want %d", got[t], t, units)
		}
	}
	for t, units := range got {
		if want[t] != units {
			return fmt.Sprintf("the log holds %d units of time %d, want %d", units, t, want[t])
		}
	}
	return ""
}
