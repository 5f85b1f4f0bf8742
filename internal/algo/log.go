package algo

import (
	"slices"
	"sort"
)

// Entry is one unit in a sliding log.
type Entry struct {
	Time int64  // µs
	ID   uint64 // shared by all units of one charge
}

// A log remembers every unit, so both are capped: a larger limit makes its script slow, a larger cost its calls.
const (
	MaxLogLimit = 10_000
	MaxLogCost  = 100
)

// replyWaitBits: a log's refusal replies what remains above, and the wait in milliseconds below.
const replyWaitBits = 36

// LogTake tells the outcome of charging cost units to a log; LogAdd then charges them. The log is not modified.
func (p *Plan) LogTake(log []Entry, us, cost int64) Outcome {
	log = p.LogTrim(log, us)
	n := int64(len(log))
	room := p.Limit - n - cost
	if room < 0 {
		return Outcome{Reply: p.logRefusal(log, us, n, cost)}
	}
	return Outcome{Reply: room}
}

// LogAdd returns the log with cost units added and what no longer counts dropped. It may reuse the log's memory.
func (p *Plan) LogAdd(log []Entry, us, cost int64, id uint64) []Entry {
	log = p.LogTrim(log, us)
	at := firstAfter(log, us) // entries stay sorted by time, also when the clock stepped back
	return slices.Insert(log, at, slices.Repeat([]Entry{{us, id}}, int(cost))...)
}

func (p *Plan) logRefusal(log []Entry, us, n, cost int64) int64 {
	var wait int64
	if cost <= p.Limit {
		leaves := log[n+cost-p.Limit-1] // the last one that must leave
		wait = (leaves.Time + p.Window - us + 999) / 1000
	}
	return -1 - (max(p.Limit-n, 0)<<replyWaitBits + wait)
}

// LogTrim returns the part of the log that counts: entries at us-Window and before do not.
func (p *Plan) LogTrim(log []Entry, us int64) []Entry { return log[firstAfter(log, us-p.Window):] }

// firstAfter returns the index of the first entry later than us.
func firstAfter(log []Entry, us int64) int {
	return sort.Search(len(log), func(i int) bool { return log[i].Time > us })
}

// LogGive removes the units of one charge and tells how many there were.
func LogGive(log []Entry, id uint64) ([]Entry, int64) {
	n := len(log)
	log = slices.DeleteFunc(log, func(e Entry) bool { return e.ID == id })
	return log, int64(n - len(log))
}

func (p *Plan) readLog(reply int64) Answer {
	a := Answer{Allowed: reply >= 0, Reset: p.Window, Remaining: reply}
	if !a.Allowed {
		a.Remaining = (-1 - reply) >> replyWaitBits
		a.Retry = (-1 - reply) & (1<<replyWaitBits - 1) * 1000
	}
	return a
}
