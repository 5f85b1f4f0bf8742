package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// A mutant may be another text for the same thing. equivalent.txt lists those, each with the reason, for review:
//
//	scripts | line | change | reason
//
// Scripts are names with commas between them; the line and the change are as the bar prints them.
//
//go:embed equivalent.txt
var equivalentText string

type equivalent struct {
	scripts      []string
	line, change string
	reason       string
	found        map[string]bool // by script
}

func readEquivalents() ([]*equivalent, error) {
	var list []*equivalent
	for i, line := range strings.Split(equivalentText, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Split(line, " | ")
		if len(fields) != 4 || strings.TrimSpace(fields[3]) == "" {
			return nil, fmt.Errorf("equivalent.txt:%d: want scripts | line | change | reason", i+1)
		}
		list = append(list, &equivalent{scripts: strings.Split(fields[0], ","), line: fields[1], change: fields[2], reason: fields[3], found: map[string]bool{}})
	}
	return list, nil
}

func find(list []*equivalent, m mutant) *equivalent {
	for _, e := range list {
		if e.line == m.line && e.change == m.change && slices.Contains(e.scripts, m.script) {
			e.found[m.script] = true
			return e
		}
	}
	return nil
}
