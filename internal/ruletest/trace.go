// Package ruletest tries rules on traces: texts that tell who asks for what, when, and what must come of it. Counters are in memory and
// the clock is the trace's own, so that a day of requests takes no time, needs no server, and always ends the same.
//
//	# Searching: three in a minute for each user.
//	start 2026-11-15T12:00:00Z
//	at 0s    user=u_42 route=/api/search              allow remaining=2
//	at 12s   2 times user=u_42 route=/api/search      admitted=2
//	at 12s   user=u_42 route=/api/search              refuse rule=search retry=48s
//	at 12s   user=u_7 plan="free trial"               allow cause=no_rule
//	at 13s   peek user=u_42 route=/api/search         refuse
//	at 14s   refund user=u_42 route=/api/search cost=1
//	at 15s   reset user=u_42 route=/api/search
//
// A line tells what happens: check, which is meant where nothing is said, peek, refund or reset; the request as name=value, where names
// that are no field are attributes; and what is expected: allow or refuse, or of a line with "times" how many are admitted. What is
// expected beyond that is written behind it; what is not written is not looked at:
//
//	rule       the rule that decided: of those that refuse the one to wait longest for, else the one with the least left
//	remaining  what it has left; remaining.NAME is that of another rule
//	says.NAME  what that rule says, allow or refuse, also where it is a shadow rule
//	retry      how long to wait, or never
//	delay      how long a throttled request is held
//	cause      limits, no_rule, exempt, blocked_by_list or blocked_by_rule
//	cost       what the request was charged
package ruletest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

// Trace is a text that was understood. It can be run many times.
type Trace struct {
	// Name is the one given to Parse, usually that of a file.
	Name string

	start time.Time
	steps []step
}

// Len tells how many things happen in it.
func (t *Trace) Len() int { return len(t.steps) }

// step is one line in which something happens.
type step struct {
	line   int
	text   string
	at     time.Duration
	verb   verb
	req    sluice.Request
	times  int // 0: once
	expect expectation
}

type verb string

const (
	check  verb = "check"
	peek   verb = "peek"
	refund verb = "refund"
	reset  verb = "reset"
)

// expectation is what must come of a step. The zero value expects nothing.
type expectation struct {
	verdict  string // allow or refuse; empty: whichever
	admitted int    // with times
	fields   []field
}

// field is one name=value.
type field struct{ name, value string }

// maxTimes bounds what one line can ask for, so that a slip of the pen does not run for hours.
const maxTimes = 1_000_000

// Parse reads a trace and reports every fault at once, each with its line. It never panics. The name stands in faults.
func Parse(name, text string) (*Trace, error) {
	t := &Trace{Name: name, start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	var faults []error
	number := 0
	for line := range strings.Lines(text) {
		number++
		words, err := split(line)
		if err == nil && len(words) > 0 {
			err = t.add(number, strings.TrimSpace(line), words)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s:%d: %w", name, number, err))
		}
	}
	if len(faults) == 0 && len(t.steps) == 0 {
		faults = append(faults, fmt.Errorf("%s: nothing happens in it: write lines such as: at 0s user=u_42 route=/api/search allow", name))
	}
	return t, errors.Join(faults...)
}

func (t *Trace) add(number int, text string, words []string) error {
	switch words[0] {
	case "start":
		return t.setStart(words[1:])
	case "at":
	default:
		return fmt.Errorf("a line begins with at or start, this one with %q", words[0])
	}
	if len(words) < 3 {
		return errors.New("nothing happens: write a time and a request, such as: at 0s user=u_42 allow")
	}
	s := step{line: number, text: text, verb: check}
	var at ruledoc.Duration
	if err := at.UnmarshalText([]byte(words[1])); err != nil {
		return err
	}
	s.at = at.Std()
	if n := len(t.steps); s.at < 0 || n > 0 && s.at < t.steps[n-1].at {
		return fmt.Errorf("%s is before the line above: write lines in the order of time", words[1])
	}
	if err := s.parse(words[2:]); err != nil {
		return err
	}
	t.steps = append(t.steps, s)
	return nil
}

func (t *Trace) setStart(words []string) error {
	if len(t.steps) > 0 {
		return errors.New("start stands above everything that happens")
	}
	if len(words) != 1 {
		return errors.New("write an instant, such as: start 2026-11-15T12:00:00Z")
	}
	when, err := time.Parse(time.RFC3339Nano, words[0])
	if err != nil {
		return fmt.Errorf("%q is no instant: write it as 2026-11-15T12:00:00Z", words[0])
	}
	t.start = when
	return nil
}

// split cuts a line into words at blanks. Quotes keep blanks in a word; a word that begins with # ends the line.
func split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord, quoted := false, false
	for _, r := range line {
		blank := r == ' ' || r == '\t' || r == '\n' || r == '\r'
		switch {
		case r == '"':
			inWord, quoted = true, !quoted
		case quoted:
			word.WriteRune(r)
		case blank && inWord:
			words, inWord = append(words, word.String()), false
			word.Reset()
		case blank:
		case r == '#' && !inWord:
			return words, nil
		default:
			inWord = true
			word.WriteRune(r)
		}
	}
	if quoted {
		return nil, errors.New("a quotation mark is not closed")
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}
