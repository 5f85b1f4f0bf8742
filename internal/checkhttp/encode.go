package checkhttp

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/httplimit"
	"github.com/sluicehq/sluice/internal/engine"
)

// CauseName returns how a cause is called in answers.
func CauseName(c sluice.Cause) string {
	switch c {
	case sluice.NoRule:
		return "no_rule"
	case sluice.Disabled:
		return "disabled"
	case sluice.Exempted:
		return "exempt"
	case sluice.BlockedByList:
		return "blocked_by_list"
	case sluice.BlockedByRule:
		return "blocked_by_rule"
	default:
		return "limits"
	}
}

// AppendDecision appends a decision in JSON, as in api/openapi.yaml. Times are whole milliseconds, rounded up; a refusal
// for which waiting cannot help has a retry_after_ms of null.
func AppendDecision(dst []byte, d *sluice.Decision) []byte {
	dst = append(dst, `{"id":"`...)
	dst, _ = d.ID.AppendText(dst) // never fails
	dst = append(dst, `","allowed":`...)
	dst = strconv.AppendBool(dst, d.Allowed)
	dst = appendText(dst, `,"cause":`, CauseName(d.Cause))
	dst = appendText(dst, `,"mode":`, d.Mode.String())
	dst = appendInt(dst, `,"cost":`, d.Cost)
	if d.Delay > 0 {
		dst = appendInt(dst, `,"delay_ms":`, milliseconds(d.Delay))
	}
	if !d.Allowed {
		dst = appendInt(dst, `,"status":`, int64(httplimit.Status(d)))
		dst = appendRetry(dst, d.RetryAfter)
	}
	dst = appendInt(dst, `,"revision":`, int64(d.Revision))
	if reason := d.BlockReason(); reason != "" {
		dst = appendText(dst, `,"block_reason":`, reason)
	}
	dst = append(dst, `,"results":[`...)
	results := d.Results()
	for i := range results {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendResult(dst, &results[i])
	}
	return append(dst, "]}"...)
}

func appendResult(dst []byte, r *sluice.Result) []byte {
	dst = appendText(dst, `{"rule":`, r.Rule.Name)
	dst = appendText(dst, `,"label":`, r.Rule.Label)
	dst = appendText(dst, `,"action":`, r.Rule.Action.String())
	if r.Limit.Limit > 0 { // a rule that blocks has none
		dst = appendText(dst, `,"algorithm":`, r.Limit.Algorithm.String())
		dst = appendInt(dst, `,"limit":`, r.Limit.Limit)
		dst = appendInt(dst, `,"window_ms":`, milliseconds(r.Limit.Window))
		if r.Limit.Burst > 0 {
			dst = appendInt(dst, `,"burst":`, r.Limit.Burst)
		}
	}
	dst = append(dst, `,"allowed":`...)
	dst = strconv.AppendBool(dst, r.Allowed)
	dst = appendText(dst, `,"mode":`, r.Mode.String())
	dst = appendInt(dst, `,"remaining":`, r.Remaining)
	dst = appendInt(dst, `,"reset_after_ms":`, milliseconds(r.ResetAfter))
	if !r.Allowed {
		dst = appendRetry(dst, r.RetryAfter)
	}
	return append(dst, '}')
}

// AppendExplanation appends an explanation in JSON, as in api/openapi.yaml.
func AppendExplanation(dst []byte, e *sluice.Explanation) []byte {
	dst = AppendDecision(append(dst, `{"decision":`...), &e.Decision)
	dst = appendText(dst, `,"reason":`, e.Decision.Reason())
	dst = append(dst, `,"rules":[`...)
	for i := range e.Rules {
		x := &e.Rules[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(dst, `{"rule":`, x.Rule.Name)
		dst = appendText(dst, `,"layer":`, x.Rule.Layer)
		dst = strconv.AppendBool(append(dst, `,"matches":`...), x.Matches)
		dst = strconv.AppendBool(append(dst, `,"applies":`...), x.Applies)
		dst = appendText(dst, `,"why":`, x.Why)
		dst = append(dst, '}')
	}
	return append(dst, "]}"...)
}

// appendAnswers appends the answer to every question, in their order.
func (b *batch) appendAnswers(dst []byte, decisions []sluice.Decision) []byte {
	dst = append(dst, `{"answers":[`...)
	for i, err := range b.faults {
		if i > 0 {
			dst = append(dst, ',')
		}
		if err != nil {
			dst = append(dst, `{"faults":`...)
			dst = appendFaults(dst, engine.FaultsOf(err))
		} else {
			dst = AppendDecision(append(dst, `{"decision":`...), &decisions[0])
			decisions = decisions[1:]
		}
		dst = append(dst, '}')
	}
	return append(dst, "]}"...)
}

func appendFaults(dst []byte, faults []engine.Fault) []byte {
	dst = append(dst, '[')
	for i, f := range faults {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(dst, `{"pointer":`, f.Pointer())
		dst = appendText(dst, `,"detail":`, f.Problem)
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

func appendRetry(dst []byte, d time.Duration) []byte {
	if d == sluice.Never {
		return append(dst, `,"retry_after_ms":null`...)
	}
	return appendInt(dst, `,"retry_after_ms":`, milliseconds(d))
}

// milliseconds rounds up.
func milliseconds(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d-1)/time.Millisecond) + 1
}

func appendInt(dst []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(dst, name...), n, 10)
}

func appendText(dst []byte, name, text string) []byte {
	dst = append(dst, name...)
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, err := json.Marshal(text) // knows all escapes; such texts are rare
			if err != nil {
				panic("checkhttp: " + err.Error()) // a string always marshals
			}
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, text...)
	return append(dst, '"')
}
