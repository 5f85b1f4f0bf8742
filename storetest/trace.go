package storetest

import (
	"bufio"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
)

// A trace is a text that tells what happens when, and what must come of it:
//
//	# a comment
//	start 2026-01-01T00:00:00Z                       the instant "at 0s" means (this one is the default)
//	limit api sliding_window 10 per 1m               a limit and its name
//	limit tb token_bucket 5 per 1s burst 10
//	at 0s    take api/alice                          -> allow remaining=9
//	at 1s    take api/alice*4, tb/alice as first     -> allow remaining=5, allow remaining=9
//	at 2s    take 20 times api/bob                   -> admitted=10
//	at 3s    peek api/alice                          -> allow remaining=5
//	at 4s    give first
//	at 5s    limit api sliding_window 20 per 1m      from now on
//	at 6s    take api/alice*99                       -> refuse remaining=19 retry=never
//	at 7s    reset api/alice
//
// A charge is LIMIT/KEY, with *N for a cost of N and ~ before it for a shadow charge. Several charges in one take are
// one group. Expectations follow in the order of the charges; a group is refused when one of its charges is.
// What an expectation does not name is not checked. Time may run backwards.
type trace struct {
	start time.Time
	steps []step
}

type step struct {
	line    int
	text    string
	at      time.Duration
	verb    string // take, peek, give, reset, limit
	charges []traceCharge
	times   int    // how often; 0: once
	name    string // receipt or limit
	limit   sluice.Limit
	delay   time.Duration
	expect  []expectation
	admits  int // with times
}

type traceCharge struct {
	limit, key string
	cost       int64
	shadow     bool
}

type expectation struct {
	allow  bool
	fields map[string]string
}

var defaultStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func parseTrace(text string) (trace, error) {
	tr := trace{start: defaultStart}
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		s := step{line: n, text: strings.Join(words, " ")}
		var err error
		switch words[0] {
		case "start":
			tr.start, err = time.Parse(time.RFC3339Nano, strings.Join(words[1:], ""))
		case "limit":
			err = s.parse(words)
			tr.steps = append(tr.steps, s)
		case "at":
			if len(words) < 3 {
				return tr, fmt.Errorf("line %d: nothing happens", n)
			}
			if s.at, err = time.ParseDuration(words[1]); err == nil {
				err = s.parse(words[2:])
			}
			tr.steps = append(tr.steps, s)
		default:
			err = fmt.Errorf("unknown word %q", words[0])
		}
		if err != nil {
			return tr, fmt.Errorf("line %d: %s: %w", n, s.text, err)
		}
	}
	return tr, lines.Err()
}

func (s *step) parse(words []string) error {
	s.verb = words[0]
	switch s.verb {
	case "limit":
		return s.parseLimit(words[1:])
	case "give":
		s.name = strings.Join(words[1:], " ")
		return nil
	case "take", "peek", "reset":
	default:
		return fmt.Errorf("unknown verb %q", s.verb)
	}
	what, outcome, _ := strings.Cut(strings.Join(words[1:], " "), "->")
	if count, rest, ok := strings.Cut(what, " times "); ok {
		n, err := strconv.Atoi(count)
		if err != nil {
			return err
		}
		s.times, what = n, rest
	}
	what, s.name, _ = strings.Cut(what, " as ")
	s.name = strings.TrimSpace(s.name)
	for text := range strings.SplitSeq(what, ",") {
		c, err := parseCharge(strings.TrimSpace(text))
		if err != nil {
			return err
		}
		s.charges = append(s.charges, c)
	}
	return s.parseOutcome(strings.TrimSpace(outcome))
}

func parseCharge(text string) (traceCharge, error) {
	c := traceCharge{cost: 1}
	text, c.shadow = strings.CutPrefix(text, "~")
	text, cost, found := strings.Cut(text, "*")
	if found {
		n, err := strconv.ParseInt(cost, 10, 64)
		if err != nil {
			return c, err
		}
		c.cost = n
	}
	var ok bool
	if c.limit, c.key, ok = strings.Cut(text, "/"); !ok {
		return c, fmt.Errorf("charge %q is not LIMIT/KEY", text)
	}
	return c, nil
}

func (s *step) parseOutcome(text string) error {
	if text == "" {
		return nil
	}
	if n, ok := strings.CutPrefix(text, "admitted="); ok {
		var err error
		s.admits, err = strconv.Atoi(n)
		return err
	}
	for part := range strings.SplitSeq(text, ",") {
		words := strings.Fields(part)
		if len(words) == 0 || words[0] != "allow" && words[0] != "refuse" {
			return fmt.Errorf("outcome %q is neither allow nor refuse", part)
		}
		e := expectation{allow: words[0] == "allow", fields: map[string]string{}}
		for _, w := range words[1:] {
			name, value, ok := strings.Cut(w, "=")
			if !ok {
				return fmt.Errorf("%q is not NAME=VALUE", w)
			}
			e.fields[name] = value
		}
		s.expect = append(s.expect, e)
	}
	if len(s.expect) != len(s.charges) {
		return fmt.Errorf("%d outcomes for %d charges", len(s.expect), len(s.charges))
	}
	return nil
}

// parseLimit reads NAME ALGORITHM N per WINDOW [burst N] [delay D].
func (s *step) parseLimit(words []string) error {
	if len(words) < 5 || words[3] != "per" || len(words)%2 == 0 {
		return errors.New("want NAME ALGORITHM N per WINDOW [burst N] [delay D]")
	}
	s.name = words[0]
	if err := s.limit.Algorithm.UnmarshalText([]byte(words[1])); err != nil {
		return err
	}
	var err error
	if s.limit.Limit, err = strconv.ParseInt(words[2], 10, 64); err != nil {
		return err
	}
	if s.limit.Window, err = time.ParseDuration(words[4]); err != nil {
		return err
	}
	for i := 5; i < len(words); i += 2 {
		switch words[i] {
		case "burst":
			s.limit.Burst, err = strconv.ParseInt(words[i+1], 10, 64)
		case "delay":
			s.delay, err = time.ParseDuration(words[i+1])
		default:
			err = fmt.Errorf("unknown word %q", words[i])
		}
		if err != nil {
			return err
		}
	}
	return s.limit.Validate()
}
