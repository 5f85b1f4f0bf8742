package httplimit

import (
	"net/http"
	"strconv"
	"time"

	"github.com/sluicehq/sluice"
)

// Dialects is a set of ways to tell clients their limits. The zero value is IETF | XRateLimit.
type Dialects uint8

// The dialects.
const (
	// IETF is RateLimit-Policy and RateLimit, as in draft-ietf-httpapi-ratelimit-headers-10: every limit by its label.
	IETF Dialects = 1 << iota
	// XRateLimit is X-RateLimit-Limit, -Remaining, -Reset and -Cost, about the tightest limit. Reset is in Unix seconds.
	XRateLimit
	// None, by itself, tells clients nothing but when to retry a refused request.
	None
)

// The header fields, as net/http spells them.
const (
	fieldPolicy     = "Ratelimit-Policy"
	fieldRateLimit  = "Ratelimit"
	fieldLimit      = "X-Ratelimit-Limit"
	fieldRemaining  = "X-Ratelimit-Remaining"
	fieldReset      = "X-Ratelimit-Reset"
	fieldCost       = "X-Ratelimit-Cost"
	fieldRetryAfter = "Retry-After"
	fieldCache      = "Cache-Control"
	fieldMode       = "Sluice-Mode"
)

// WriteHeaders sets the header fields of a decision, in place of earlier ones. They are made of the decision alone:
// limits in force by their labels, never a rule's name, and nothing about shadow rules. A decision without limits, such
// as about a request no rule matches, sets none.
//
// For a limit that refused, t and X-RateLimit-Reset tell when the same request can pass; for others, when all units are
// back. In every dialect a refusal sets Cache-Control: no-store, and Retry-After unless waiting cannot help. Retry-After is
// no earlier than the t of any limit that refused, and up to a tenth later, so that clients refused together do not all
// come back together.
//
// Unless dialects is None, Sluice-Mode tells that the counter store did not answer and how the decision was made
// instead: "local" by this node's share of the limits, "open" or "closed" without counting.
func WriteHeaders(h http.Header, d *sluice.Decision, dialects Dialects, now time.Time) {
	if dialects == 0 {
		dialects = IETF | XRateLimit
	}
	var f fields
	var space [512]byte
	buf := space[:0]
	if t := d.Tightest(); t != nil {
		if dialects&IETF != 0 {
			buf = f.appendIETF(buf, d.Results())
		}
		if dialects&XRateLimit != 0 {
			buf = f.appendXRateLimit(buf, t, d.Cost, now)
		}
	}
	mode := weakest(d.Results())
	if len(d.Results()) == 0 {
		mode = d.Mode // no limit decided, because nobody could be asked
	}
	if mode > sluice.Leased && dialects != None {
		buf = append(buf, mode.String()...)
		f.end(buf, fieldMode)
	}
	if !d.Allowed {
		buf = f.appendRefusal(buf, d)
	}
	f.set(h, string(buf))
}

// fields cuts header fields out of one text, so that however many there are, they are two allocations. The text is
// passed beside it, because held in here it would be a third.
type fields struct {
	count int
	names [9]string
	ends  [9]int // where each field ends in the text and the next begins
}

// end makes a field of what was appended since the last one.
func (f *fields) end(buf []byte, name string) {
	f.names[f.count], f.ends[f.count] = name, len(buf)
	f.count++
}

// begin is where the field that is being appended begins.
func (f *fields) begin() int {
	if f.count == 0 {
		return 0
	}
	return f.ends[f.count-1]
}

func (f *fields) set(h http.Header, text string) {
	if f.count == 0 {
		return
	}
	values, from := make([]string, f.count), 0
	for i, to := range f.ends[:f.count] {
		values[i], from = text[from:to], to
		h[f.names[i]] = values[i : i+1 : i+1] // without room, so that Header.Add copies and spares the next field
	}
}

func (f *fields) appendIETF(buf []byte, results []sluice.Result) []byte {
	for i := range results {
		if r := &results[i]; shown(r) {
			buf = f.appendItem(buf, results, i)
			buf = appendParam(buf, 'q', r.Limit.Capacity())
			// Seconds are all the draft can say; without w it is a policy whose window is not told.
			if span := windowOf(r.Limit); span >= time.Second {
				buf = appendParam(buf, 'w', seconds(span))
			}
		}
	}
	f.end(buf, fieldPolicy)
	for i := range results {
		if r := &results[i]; shown(r) {
			buf = f.appendItem(buf, results, i)
			buf = appendParam(buf, 'r', remaining(r))
			buf = appendParam(buf, 't', seconds(wait(r)))
		}
	}
	f.end(buf, fieldRateLimit)
	return buf
}

// appendItem begins a list's next item by its name.
func (f *fields) appendItem(buf []byte, results []sluice.Result, i int) []byte {
	if len(buf) > f.begin() {
		buf = append(buf, ", "...)
	}
	var space [128]byte
	return appendString(buf, appendName(space[:0], results, i))
}

func (f *fields) appendXRateLimit(buf []byte, t *sluice.Result, cost int64, now time.Time) []byte {
	buf = f.appendInt(buf, fieldLimit, t.Limit.Capacity())
	buf = f.appendInt(buf, fieldRemaining, remaining(t))
	// Counting from the whole second keeps it after now, and no later than Retry-After.
	buf = f.appendInt(buf, fieldReset, now.Unix()+max(seconds(wait(t)), 1))
	return f.appendInt(buf, fieldCost, cost)
}

func (f *fields) appendRefusal(buf []byte, d *sluice.Decision) []byte {
	buf = append(buf, "no-store"...)
	f.end(buf, fieldCache)
	// A request that costs more than its limit ever admits, or that is blocked, passes at no time: any number
	// here would promise that it does.
	if d.RetryAfter != sluice.Never {
		buf = f.appendInt(buf, fieldRetryAfter, retryAfter(d))
	}
	return buf
}

func (f *fields) appendInt(buf []byte, name string, n int64) []byte {
	buf = strconv.AppendInt(buf, n, 10)
	f.end(buf, name)
	return buf
}

// retryAfter is at least a second, and up to a tenth later than the decision says. Decisions count up, so those made
// one after the other are spread evenly; and the same decision always gives the same answer.
func retryAfter(d *sluice.Decision) int64 {
	n := max(seconds(d.RetryAfter), 1)
	spread := uint64(n/10 + 1)
	id := d.ID.String()
	sequence, _ := strconv.ParseUint(id[len(id)/2:], 16, 64) // always hexadecimal
	return n + int64(sequence%spread)                        // at most n/10
}

// wait is how long until the limit has more units for the client: enough for this request where it was refused.
func wait(r *sluice.Result) time.Duration {
	if !r.Allowed && r.RetryAfter != sluice.Never {
		return r.RetryAfter
	}
	return r.ResetAfter
}

func remaining(r *sluice.Result) int64 { return min(max(r.Remaining, 0), r.Limit.Capacity()) }

// seconds rounds up.
func seconds(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d-1)/time.Second) + 1
}

// weakest is the mode of the limits that are shown. The decision's own counts shadow rules, too.
func weakest(results []sluice.Result) sluice.Mode {
	mode := sluice.Exact
	for i := range results {
		if shown(&results[i]) {
			mode = max(mode, results[i].Mode)
		}
	}
	return mode
}
