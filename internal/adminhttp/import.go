package adminhttp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/sluicehq/sluice/internal/registry"
)

const (
	// maxLine is the most that one subject may have, many times what it needs.
	maxLine = 16 << 10
	// linesPerDeadline lines may take lineTimeout: the server bounds the time of whole requests, and a million subjects take longer.
	linesPerDeadline = 1000
)

// importSubjects writes subjects, one JSON object per line. All of them are there afterwards, or none.
func (h *handler) importSubjects(w http.ResponseWriter, r *http.Request) {
	edit := h.edit(w, r)
	source := &subjectLines{scanner: bufio.NewScanner(r.Body), control: http.NewResponseController(w)}
	source.scanner.Buffer(make([]byte, 0, 4096), maxLine)
	_ = source.control.SetWriteDeadline(time.Time{}) // where it is not supported, nothing was bounded
	n, err := h.scoped(r).ImportSubjects(r.Context(), source.next, edit)
	var wrong *lineError
	switch {
	case errors.As(err, &wrong):
		writeFaults(w, wrong.faults)
		return
	case err != nil:
		writeError(w, err)
		return
	}
	if !edit.DryRun {
		h.wrote(r, edit)
	}
	writeJSON(w, struct {
		Subjects int64 `json:"subjects"`
		DryRun   bool  `json:"dry_run,omitempty"`
	}{n, edit.DryRun})
}

// subjectLines reads subjects from a body.
type subjectLines struct {
	scanner *bufio.Scanner
	control *http.ResponseController
	line    int
}

// lineError is what is wrong with one line.
type lineError struct{ faults []fault }

func (e *lineError) Error() string {
	return fmt.Sprintf("line %s: %s", e.faults[0].Pointer, e.faults[0].Detail)
}

func (s *subjectLines) next() (registry.Subject, bool, error) {
	for {
		if s.line%linesPerDeadline == 0 {
			_ = s.control.SetReadDeadline(time.Now().Add(lineTimeout))
		}
		s.line++
		if !s.scanner.Scan() {
			if err := s.scanner.Err(); err != nil {
				return registry.Subject{}, false, s.wrong([]fault{{"", "could not be read: " + err.Error()}})
			}
			return registry.Subject{}, false, nil
		}
		text := bytes.TrimSpace(s.scanner.Bytes())
		if len(text) == 0 {
			continue
		}
		var sub registry.Subject
		faults := decode(text, &sub)
		if faults == nil {
			sub.Who, faults = checkWho(sub.Who, false)
			faults = append(faults, checkText("/tier", sub.Tier, 0, 128)...)
		}
		if faults != nil {
			return sub, false, s.wrong(faults)
		}
		return sub, true, nil
	}
}

// wrong tells the line, counted from 1, before the place in it.
func (s *subjectLines) wrong(faults []fault) error {
	for i := range faults {
		faults[i].Pointer = "/" + strconv.Itoa(s.line) + faults[i].Pointer
	}
	return &lineError{faults}
}
