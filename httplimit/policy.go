package httplimit

import (
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
)

// A policy is what clients see of a limit in force: its rule's label, and its numbers.

// shown tells whether clients hear of a result.
func shown(r *sluice.Result) bool { return r.Enforced() && r.Limit.Limit > 0 }

// appendName appends the name of the i-th result's policy: the label, and a number where earlier limits have the
// same label, as in "search" and "search-2". Labels are printable ASCII by sluice.Validate; of others the bytes are
// written in hexadecimal.
func appendName(dst []byte, results []sluice.Result, i int) []byte {
	label := results[i].Rule.Label
	for j := range len(label) {
		if c := label[j]; c < ' ' || c > '~' {
			dst = append(dst, '%', hexDigits[c>>4], hexDigits[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	if n := numberOf(results, i); n > 1 {
		dst = strconv.AppendInt(append(dst, '-'), int64(n), 10)
	}
	return dst
}

const hexDigits = "0123456789ABCDEF"

// numberOf tells limits of one label apart: 1 for the first, and from 2 on what makes the name of no other label.
func numberOf(results []sluice.Result, i int) int {
	label, n := results[i].Rule.Label, 1
	for j := range i {
		if shown(&results[j]) && results[j].Rule.Label == label {
			for n++; isLabel(results, label, n); n++ {
				continue
			}
		}
	}
	return n
}

// isLabel tells whether a rule is labelled as the n-th limit of a label would be named.
func isLabel(results []sluice.Result, label string, n int) bool {
	for i := range results {
		rest, longer := strings.CutPrefix(results[i].Rule.Label, label)
		if longer && shown(&results[i]) && strings.HasPrefix(rest, "-") && rest[1:] == strconv.Itoa(n) {
			return true
		}
	}
	return false
}

// appendString appends a string of RFC 9651. The text must be printable ASCII.
func appendString(dst, text []byte) []byte {
	dst = append(dst, '"')
	for _, c := range text {
		if c == '"' || c == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}

// maxInteger is the largest integer of RFC 9651. A fixed window counts further than that.
const maxInteger = 999_999_999_999_999

func appendParam(dst []byte, name byte, n int64) []byte {
	return strconv.AppendInt(append(dst, ';', name, '='), min(n, maxInteger), 10)
}

// windowOf is the time in which a limit admits its capacity once. For a token bucket that is the time it takes to
// fill, so that capacity and window together tell its rate, whatever its burst.
func windowOf(l sluice.Limit) time.Duration {
	if l.Algorithm != sluice.TokenBucket || l.Capacity() == l.Limit {
		return l.Window
	}
	perUnit := uint64(l.Limit)
	hi, lo := bits.Mul64(uint64(l.Window), uint64(l.Capacity()))
	if hi >= perUnit {
		return math.MaxInt64
	}
	span, rest := bits.Div64(hi, lo, perUnit)
	if rest > 0 {
		span++
	}
	return time.Duration(min(span, math.MaxInt64))
}
