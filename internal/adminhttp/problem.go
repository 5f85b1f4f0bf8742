package adminhttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/engine"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/telemetry"
)

// problem is an answer as in RFC 9457, of no particular type.
type problem struct {
	Type   string  `json:"type"`
	Title  string  `json:"title"`
	Status int     `json:"status"`
	Detail string  `json:"detail,omitempty"`
	Errors []fault `json:"errors,omitempty"`
}

// fault is what is wrong with one field.
type fault struct {
	// Pointer is a JSON pointer into the body, or names a parameter of the query.
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

func writeProblem(w http.ResponseWriter, p problem) {
	p.Type, p.Title = "about:blank", http.StatusText(p.Status)
	body, err := json.Marshal(p)
	if err != nil {
		panic("adminhttp: " + err.Error()) // strings and a number always marshal
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // fails when the client is gone
}

// writeError answers what could not be done.
func writeError(w http.ResponseWriter, err error) {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		writeProblem(w, problem{Status: http.StatusRequestEntityTooLarge, Detail: fmt.Sprintf("The body is larger than %d KB.", tooLarge.Limit>>10)})
	case errors.Is(err, sluice.ErrInvalidRequest):
		p := problem{Status: http.StatusBadRequest, Detail: err.Error()}
		for _, f := range engine.FaultsOf(err) {
			p.Errors = append(p.Errors, fault{f.Pointer(), f.Problem})
		}
		if p.Errors != nil {
			p.Detail = "The request was not understood; nothing was done."
		}
		writeProblem(w, p)
	case writeRegistryError(w, err):
	case errors.Is(err, telemetry.ErrTooManyReaders):
		writeProblem(w, problem{Status: http.StatusServiceUnavailable, Detail: err.Error()})
	case errors.Is(err, sluice.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		w.Header().Set("Retry-After", "1")
		// The cause is for operators, who read this.
		writeProblem(w, problem{Status: http.StatusServiceUnavailable, Detail: "The counter store did not answer, so it is not known what was done: " + err.Error()})
	default:
		writeProblem(w, problem{Status: http.StatusInternalServerError, Detail: err.Error()})
	}
}

// writeRegistryError answers what the registry could not do; false where the error is none of its.
func writeRegistryError(w http.ResponseWriter, err error) bool {
	status := 0
	for _, known := range [...]struct {
		err    error
		status int
	}{
		{registry.ErrNotFound, http.StatusNotFound},
		{registry.ErrConflict, http.StatusPreconditionFailed},
		{registry.ErrExists, http.StatusConflict},
		{registry.ErrForbidden, http.StatusForbidden},
		{registry.ErrInvalid, http.StatusUnprocessableEntity},
		{registry.ErrUnavailable, http.StatusServiceUnavailable},
	} {
		if errors.Is(err, known.err) {
			status = known.status
			break
		}
	}
	detail := err.Error()
	switch status {
	case 0:
		return false
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
		detail = "The database did not answer, so it is not known what was done: " + detail
	}
	writeProblem(w, problem{Status: status, Detail: detail})
	return true
}
