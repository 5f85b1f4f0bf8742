package ruledoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Fault is something wrong with what was written, or a warning about it.
type Fault struct { //nolint:errname // it is gathered and shown more than it is returned
	// File is the name given to Decode.
	File string
	// Line and Column are counted from 1; 0 where they are not known.
	Line, Column int
	// Entry names what the fault is in, such as `rule "login"`. Empty: the file itself.
	Entry string
	// Field is such as "limits[1].window". Empty: the entry as a whole.
	Field string
	// Source is the line's text.
	Source string
	// Warning tells that the entry works, but probably not as meant.
	Warning bool
	Err     error
}

// Error tells everything in one line: place, entry, field, and what to do.
func (f Fault) Error() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", f.Line, f.Column)
	}
	if f.File != "" {
		b.WriteString(": ")
	}
	if f.Warning {
		b.WriteString("warning: ")
	}
	for _, part := range [...]string{f.Entry, f.Field} {
		if part != "" {
			b.WriteString(part + ": ")
		}
	}
	b.WriteString(f.Err.Error())
	return b.String()
}

// Unwrap returns the cause.
func (f Fault) Unwrap() error { return f.Err }

// Quote is Error with the line it speaks of and a mark under the place, for people at a terminal.
func (f Fault) Quote() string {
	if f.Source == "" || f.Line == 0 {
		return f.Error()
	}
	number := fmt.Sprintf("%5d", f.Line)
	column := min(max(f.Column-1, 0), len(f.Source))
	// Tabs stay tabs, so that the mark stands where the text does.
	pad := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, f.Source[:column])
	return fmt.Sprintf("%s\n%s | %s\n%s | %s^", f.Error(), number, f.Source, strings.Repeat(" ", len(number)), pad)
}

// MarshalJSON writes the fault for the status page.
func (f Fault) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		File    string `json:"file,omitempty"`
		Line    int    `json:"line,omitempty"`
		Column  int    `json:"column,omitempty"`
		Entry   string `json:"entry,omitempty"`
		Field   string `json:"field,omitempty"`
		Warning bool   `json:"warning,omitempty"`
		Message string `json:"message"`
	}{f.File, f.Line, f.Column, f.Entry, f.Field, f.Warning, f.Err.Error()})
}

// Join makes one error of the faults that are not warnings; nil when there is none.
func Join(faults []Fault) error {
	var errs []error
	for _, f := range faults {
		if !f.Warning {
			errs = append(errs, f)
		}
	}
	return errors.Join(errs...)
}

// maxFaults bounds what one file reports: nobody reads more, and a file of ten megabytes can hold a million.
const maxFaults = 100

// Cap shortens a list to what one would read, and ends it with the number of those left out.
func Cap(faults []Fault) []Fault {
	if len(faults) <= maxFaults {
		return faults
	}
	more := Fault{Err: fmt.Errorf("and %d more: correct these first", len(faults)-maxFaults)}
	return append(faults[:maxFaults:maxFaults], more)
}

// source is a file's text, and tells where things are in it.
type source struct {
	name  string
	data  []byte
	lines []int // where each line starts
}

func newSource(name string, data []byte) *source {
	s := &source{name: name, data: data, lines: []int{0}}
	for i := 0; ; {
		n := bytes.IndexByte(data[i:], '\n')
		if n < 0 {
			return s
		}
		i += n + 1
		s.lines = append(s.lines, i)
	}
}

// place finds the line and column of an offset.
func (s *source) place(offset int) place {
	low, high := 0, len(s.lines)
	for high-low > 1 {
		if middle := (low + high) / 2; s.lines[middle] <= offset {
			low = middle
		} else {
			high = middle
		}
	}
	return place{low + 1, offset - s.lines[low] + 1}
}

// maxQuoted is how much of a line is quoted; minified files have one line.
const maxQuoted = 160

func (s *source) line(n int) string {
	if n < 1 || n > len(s.lines) {
		return ""
	}
	text := s.data[s.lines[n-1]:]
	if end := bytes.IndexByte(text, '\n'); end >= 0 {
		text = text[:end]
	}
	text = bytes.TrimRight(text, "\r")
	for len(text) > maxQuoted || !utf8.Valid(text) && len(text) > maxQuoted-utf8.UTFMax {
		text = text[:min(len(text)-1, maxQuoted)]
	}
	return string(text)
}

func (s *source) fault(at place, err error) Fault {
	return Fault{File: s.name, Line: at.line, Column: at.column, Source: s.line(at.line), Err: err}
}

// place is a line and a column; the zero value is none.
type place struct{ line, column int }
