package forwardauth

import (
	"net/http"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/httplimit"
	"github.com/sluicehq/sluice/internal/httpserver"
)

// The fields for proxies that hand over neither status nor body.
const (
	fieldStatus  = "Sluice-Status"
	fieldProblem = "Sluice-Problem"
)

// maxBody is the largest body that proxies take; Traefik can be told a bound, and header fields have one of about 4 KiB.
const maxBody = 3 << 10

// refuse answers for a decision that refuses. It has a decision of its own, so that only refused requests pay for one on
// the heap.
func refuse(w http.ResponseWriter, d sluice.Decision, denied int) {
	c := &captured{header: http.Header{}}
	httplimit.Refuse(c, &d)
	if len(c.body) > maxBody {
		c.body = httpserver.ProblemBody(c.status, "")
	}
	send(w, c.status, c.body, denied)
}

// refusal is one for which there is no decision.
type refusal struct {
	status int
	detail string
}

func (r refusal) answer(w http.ResponseWriter, denied int) {
	w.Header().Set("Cache-Control", "no-store")
	send(w, r.status, httpserver.ProblemBody(r.status, r.detail), denied)
}

// send answers with the status that the proxy asked for, or else with the one that is meant for the client.
func send(w http.ResponseWriter, status int, body []byte, denied int) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	if denied != 0 {
		h.Set(fieldStatus, strconv.Itoa(status))
		h.Set(fieldProblem, string(ascii(body)))
		status = denied
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // fails when the proxy is gone
}

// ascii writes JSON without characters that a header field cannot carry.
func ascii(json []byte) []byte {
	out := make([]byte, 0, len(json))
	for len(json) > 0 {
		r, n := utf8.DecodeRune(json)
		json = json[n:]
		switch {
		case r < utf8.RuneSelf:
			out = append(out, byte(r))
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			out = appendEscape(appendEscape(out, high), low)
		default:
			out = appendEscape(out, r)
		}
	}
	return out
}

func appendEscape(out []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	return append(out, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}

// captured keeps an answer instead of sending it.
type captured struct {
	header http.Header
	status int
	body   []byte
}

// Header returns the fields.
func (c *captured) Header() http.Header { return c.header }

// WriteHeader keeps the status.
func (c *captured) WriteHeader(status int) { c.status = status }

// Write keeps the body.
func (c *captured) Write(p []byte) (int, error) {
	c.body = append(c.body, p...)
	return len(p), nil
}
