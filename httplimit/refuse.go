package httplimit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/sluicehq/sluice"
)

// The types of problem that draft-ietf-httpapi-ratelimit-headers-10 registers.
const (
	quotaExceeded   = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	reducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	noType          = "about:blank" // of RFC 9457: the title is that of the status
)

// statusClientGone is nginx's status for requests whose client did not wait. It is read in logs only.
const statusClientGone = 499

// problem is an answer as in RFC 9457.
type problem struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail,omitempty"`
	Instance string   `json:"instance,omitempty"`
	Violated []string `json:"violated-policies,omitempty"`
}

// Refuse answers a refused request: a problem document (RFC 9457) with the status and the message of the rule that
// refused, the labels of all limits that did, and the decision's id. It sets no header field but Content-Type; see
// WriteHeaders.
func Refuse(w http.ResponseWriter, d *sluice.Decision) {
	p := problemOf(d)
	p.Instance = "urn:sluice:decision:" + d.ID.String()
	p.write(w)
}

// Status returns the status for a refused request: that of the rule that refused, of several that one which refuses
// longest. It is 403 for a blocked subject. It is 503 where the rule refused only because the counter store did not
// answer, unless the rule asks for a status other than 429, which would tell the client that it had spent its quota.
func Status(d *sluice.Decision) int { return problemOf(d).Status }

// ErrorStatus returns the status for a request about which nothing was decided: 400 when it has no key or is
// invalid, 499 when its client is gone, 503 when its deadline passed, else 500.
func ErrorStatus(err error) int {
	switch {
	case errors.Is(err, context.Canceled):
		return statusClientGone
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	case errors.Is(err, ErrKey), errors.Is(err, sluice.ErrInvalidRequest):
		return http.StatusBadRequest
	default:
		return http.StatusInternalServerError
	}
}

// answerError does not repeat the error, which is not written for clients.
func answerError(w http.ResponseWriter, err error) {
	status := ErrorStatus(err)
	if status == statusClientGone {
		// Nobody reads it. But without a status it would pass for 200 in logs, and with whoever else ended the context.
		w.WriteHeader(status)
		return
	}
	problem{Type: noType, Title: http.StatusText(status), Status: status}.write(w)
}

// problemOf chooses what a client is told. No rule's name is in it, nor what other rules count by.
func problemOf(d *sluice.Decision) problem {
	if d.Cause == sluice.BlockedByList {
		return blocked(http.StatusForbidden, "Requests of this client are refused.")
	}
	results := d.Results()
	t := d.Tightest()
	if t == nil {
		status, message := http.StatusTooManyRequests, ""
		if len(results) > 0 { // a rule that blocks
			status, message = results[0].Rule.Response.Status, results[0].Rule.Response.Message
		}
		return blocked(status, cmp.Or(message, "Such requests are refused."))
	}
	p := problem{
		Type:   quotaExceeded,
		Title:  "Request cannot be satisfied as assigned quota has been exceeded",
		Status: cmp.Or(t.Rule.Response.Status, sluice.DefaultStatus),
	}
	var tightest string
	p.Violated, tightest = violated(results, t)
	switch {
	case t.Mode == sluice.Closed:
		p.Type, p.Title = reducedCapacity, "Request cannot be satisfied due to temporary server capacity constraints"
		p.Detail = "Quotas cannot be counted at the moment."
		if p.Status == http.StatusTooManyRequests {
			p.Status = http.StatusServiceUnavailable
		}
	case t.RetryAfter == sluice.Never:
		p.Detail = fmt.Sprintf("The request costs more than the quota %q ever admits.", tightest)
	default:
		p.Detail = fmt.Sprintf("The quota %q is spent.", tightest)
	}
	p.Detail = cmp.Or(t.Rule.Response.Message, p.Detail)
	return p
}

// violated names the policies whose quota does not suffice, and that of the result t. A limit that could not be
// counted refuses without being violated.
func violated(results []sluice.Result, t *sluice.Result) (names []string, tightest string) {
	for i := range results {
		r := &results[i]
		if !shown(r) || r.Allowed || r.Mode == sluice.Closed {
			continue
		}
		name := string(appendName(nil, results, i))
		names = append(names, name)
		if r == t {
			tightest = name
		}
	}
	return names, tightest
}

func blocked(status int, detail string) problem {
	status = cmp.Or(status, sluice.DefaultStatus)
	return problem{Type: noType, Title: cmp.Or(http.StatusText(status), "Refused"), Status: status, Detail: detail}
}

func (p problem) write(w http.ResponseWriter) {
	body, err := json.Marshal(p)
	if err != nil {
		panic("httplimit: " + err.Error()) // strings and a number always marshal
	}
	w.Header()["Content-Type"] = []string{"application/problem+json"}
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // fails when the client is gone
}
