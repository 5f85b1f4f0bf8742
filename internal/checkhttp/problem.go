package checkhttp

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/sluicehq/sluice/httplimit"
	"github.com/sluicehq/sluice/internal/engine"
)

// reducedCapacity is a type of problem that draft-ietf-httpapi-ratelimit-headers-10 registers.
const reducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"

// problem is an answer as in RFC 9457. Type and title are those of the status unless set.
type problem struct {
	Type   string
	Status int
	Detail string
	Faults []engine.Fault
}

// writeError answers a question that was not decided.
func writeError(w http.ResponseWriter, err error) {
	writeProblem(w, problemOf(w.Header(), err))
}

func problemOf(h http.Header, err error) problem {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(err, engine.ErrOverloaded):
		h.Set("Retry-After", "1")
		return problem{Type: reducedCapacity, Status: http.StatusServiceUnavailable, Detail: "This node has too many requests under way."}
	case errors.Is(err, errMediaType):
		return problem{Status: http.StatusUnsupportedMediaType, Detail: err.Error()}
	case errors.As(err, &tooLarge):
		return problem{Status: http.StatusRequestEntityTooLarge, Detail: "The body is larger than 64 KB."}
	case errors.Is(err, errBody):
		return problem{Status: http.StatusBadRequest, Detail: "The body could not be read."}
	}
	p := problem{Status: httplimit.ErrorStatus(err), Faults: engine.FaultsOf(err)}
	if len(p.Faults) > 0 {
		p.Detail = "The question was not understood; nothing was decided."
	}
	return p
}

func writeProblem(w http.ResponseWriter, p problem) {
	body := appendText(nil, `{"type":`, cmp.Or(p.Type, "about:blank"))
	body = appendText(body, `,"title":`, cmp.Or(http.StatusText(p.Status), "Client Closed Request"))
	body = appendInt(body, `,"status":`, int64(p.Status))
	if p.Detail != "" {
		body = appendText(body, `,"detail":`, p.Detail)
	}
	if len(p.Faults) > 0 {
		body = appendFaults(append(body, `,"errors":`...), p.Faults)
	}
	h := w.Header()
	h["Content-Type"] = []string{"application/problem+json"}
	h["Cache-Control"] = []string{"no-store"}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, "}\n"...)) // fails when the client is gone
}
