package httpserver

import (
	"encoding/json"
	"net/http"
)

// Problem answers with a problem document (RFC 9457) of no particular type. The detail is written for the client.
func Problem(w http.ResponseWriter, status int, detail string) {
	w.Header()["Content-Type"] = []string{"application/problem+json"}
	w.Header()["Cache-Control"] = []string{"no-store"}
	w.WriteHeader(status)
	_, _ = w.Write(ProblemBody(status, detail)) // fails when the client is gone
}

// ProblemBody is the document that Problem sends.
func ProblemBody(status int, detail string) []byte {
	title := http.StatusText(status)
	if title == "" {
		title = "Refused"
	}
	body, err := json.Marshal(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail,omitempty"`
	}{"about:blank", title, status, detail})
	if err != nil {
		panic("httpserver: " + err.Error()) // strings and a number always marshal
	}
	return body
}
