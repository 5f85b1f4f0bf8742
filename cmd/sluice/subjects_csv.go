package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluicehq/sluice/internal/registry"
)

// subjectRows reads subjects from CSV, one by one. The first line names the columns.
type subjectRows struct {
	csv     *csv.Reader
	columns []string
}

// csvColumns are the columns there can be, in any order; the last two may be missing.
var csvColumns = []string{"dimension", "id", "tier", "tier_since"}

func newSubjectRows(r io.Reader) (*subjectRows, error) {
	s := &subjectRows{csv: csv.NewReader(r)}
	s.csv.ReuseRecord = true
	header, err := s.csv.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty: its first line names the columns, such as dimension,id,tier")
	}
	if err != nil {
		return nil, err
	}
	for i, name := range header {
		name = strings.ToLower(strings.TrimSpace(name))
		if i == 0 {
			name = strings.TrimPrefix(name, "\ufeff") // as spreadsheets write
		}
		if !slices.Contains(csvColumns, name) || slices.Contains(s.columns, name) {
			return nil, fmt.Errorf("line 1: column %q: want each of %s once", name, strings.Join(csvColumns, ", "))
		}
		s.columns = append(s.columns, name)
	}
	for _, name := range csvColumns[:2] {
		if !slices.Contains(s.columns, name) {
			return nil, fmt.Errorf("line 1: there is no column %s: the first line names the columns, such as dimension,id,tier", name)
		}
	}
	return s, nil
}

// maxID is the longest id that a cluster keeps, in characters.
const maxID = 255

// next returns the next subject, io.EOF at the end, or what is wrong with a line.
func (s *subjectRows) next() (registry.Subject, error) {
	var sub registry.Subject
	record, err := s.csv.Read()
	if err != nil {
		return sub, err // it tells the line
	}
	line, _ := s.csv.FieldPos(0)
	for i, name := range s.columns {
		value := record[i]
		switch name {
		case "dimension":
			sub.Dimension = value
		case "id":
			sub.ID = value
		case "tier":
			sub.Tier = value
		case "tier_since":
			if sub.TierSince, err = readSince(value); err != nil {
				return sub, fmt.Errorf("line %d: %w", line, err)
			}
		}
	}
	switch {
	case !slices.Contains(subjectDimensions, sub.Dimension):
		return sub, fmt.Errorf("line %d: dimension %q: want %s", line, sub.Dimension, strings.Join(subjectDimensions, ", "))
	case sub.ID == "" || utf8.RuneCountInString(sub.ID) > maxID:
		return sub, fmt.Errorf("line %d: the id has %d characters: want 1 to %d", line, utf8.RuneCountInString(sub.ID), maxID)
	case !utf8.ValidString(sub.ID) || !utf8.ValidString(sub.Tier) || strings.ContainsRune(sub.ID+sub.Tier, 0):
		return sub, fmt.Errorf("line %d: want UTF-8 without NUL: save the file in that encoding", line)
	}
	return sub, nil
}

func readSince(value string) (time.Time, error) {
	if value == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.DateOnly, value); err == nil {
		return t, nil
	}
	t, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return t, fmt.Errorf("tier_since %q: want 2026-11-15 or 2026-11-15T12:00:00Z", value)
	}
	return t, nil
}
