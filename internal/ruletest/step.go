package ruletest

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

// parse reads what stands behind the time: [VERB] [N times] REQUEST [->] [EXPECTATION].
func (s *step) parse(words []string) error {
	if v := verb(words[0]); slices.Contains([]verb{check, peek, refund, reset}, v) {
		s.verb, words = v, words[1:]
	}
	if len(words) > 1 && words[1] == "times" {
		n, err := strconv.Atoi(words[0])
		if err != nil || n < 1 || n > maxTimes {
			return fmt.Errorf("%q times: want a whole number from 1 to %d", words[0], maxTimes)
		}
		s.times, words = n, words[2:]
	}
	end := slices.IndexFunc(words, s.beginsExpectation)
	if end < 0 {
		end = len(words)
	}
	if err := s.parseRequest(words[:end]); err != nil {
		return err
	}
	words = words[end:]
	if len(words) > 0 && words[0] == "->" {
		words = words[1:]
		if len(words) == 0 {
			return errors.New("nothing is expected behind ->")
		}
	}
	return s.parseExpectation(words)
}

// beginsExpectation tells where the request ends. An attribute can be called admitted, but not in a line with "times".
func (s *step) beginsExpectation(word string) bool {
	return !strings.Contains(word, "=") || s.times > 0 && strings.HasPrefix(word, "admitted=")
}

func (s *step) parseRequest(words []string) error {
	if len(words) == 0 {
		return errors.New("who asks is not told: write name=value, such as user=u_42")
	}
	r := &s.req
	texts := map[string]*string{
		"namespace": &r.Namespace, "tenant": &r.Subject.Tenant, "user": &r.Subject.User, "api_key": &r.Subject.APIKey,
		"tier": &r.Subject.Tier, "route": &r.Route, "method": &r.Method,
	}
	seen := map[string]bool{}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		if name == "" || value == "" {
			return fmt.Errorf("%q is not name=value", word)
		}
		if seen[name] {
			return fmt.Errorf("%s is there twice", name)
		}
		seen[name] = true
		switch field := texts[name]; {
		case field != nil:
			*field = value
		case name == "ip":
			addr, err := netip.ParseAddr(value)
			if err != nil {
				return fmt.Errorf("ip: %q is no address: write it as 203.0.113.7 or 2001:db8::1", value)
			}
			r.Subject.IP = addr
		case name == "cost":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < 1 {
				return fmt.Errorf("cost is %q: want a whole number from 1", value)
			}
			r.Cost = n
		default:
			if r.Attributes == nil {
				r.Attributes = map[string]string{}
			}
			r.Attributes[name] = value
		}
	}
	return nil
}

func (s *step) parseExpectation(words []string) error {
	if len(words) == 0 {
		return nil
	}
	if s.verb == refund || s.verb == reset {
		return fmt.Errorf("%s decides nothing, so nothing can be expected of it: peek in the next line", s.verb)
	}
	if s.times > 0 {
		return s.parseAdmitted(words)
	}
	e := &s.expect
	if e.verdict = words[0]; e.verdict != "allow" && e.verdict != "refuse" {
		return fmt.Errorf("%q is expected: want allow or refuse", e.verdict)
	}
	for _, word := range words[1:] {
		name, value, found := strings.Cut(word, "=")
		if !found || value == "" {
			return fmt.Errorf("%q is expected: want name=value behind %s", word, e.verdict)
		}
		if err := checkField(name, value); err != nil {
			return err
		}
		e.fields = append(e.fields, field{name, value})
	}
	return nil
}

func (s *step) parseAdmitted(words []string) error {
	text, found := strings.CutPrefix(words[0], "admitted=")
	n, err := strconv.Atoi(text)
	if !found || len(words) > 1 || err != nil || n < 0 || n > s.times {
		return fmt.Errorf("%q is expected: want admitted=N, with N from 0 to %d", strings.Join(words, " "), s.times)
	}
	s.expect.admitted = n
	s.expect.verdict = "admitted"
	return nil
}

// checkField refuses what could never be true, so that it is told as a fault of the trace and not of the rules.
func checkField(name, value string) error {
	kind, of, dotted := strings.Cut(name, ".")
	if dotted && (of == "" || kind != "remaining" && kind != "says") {
		kind = ""
	}
	switch kind {
	case "rule":
		return nil
	case "cause":
		if !slices.Contains(causes[:], value) {
			return fmt.Errorf("cause=%s: want one of %s", value, strings.Join(causes[:], ", "))
		}
		return nil
	case "says":
		if value != "allow" && value != "refuse" {
			return fmt.Errorf("%s=%s: want allow or refuse", name, value)
		}
		return nil
	case "remaining", "cost":
		if _, err := strconv.ParseInt(value, 10, 64); err != nil {
			return fmt.Errorf("%s=%s: want a whole number", name, value)
		}
		return nil
	case "retry", "delay":
		var d ruledoc.Duration
		if value == "never" && kind == "retry" {
			return nil
		}
		return d.UnmarshalText([]byte(value))
	}
	return fmt.Errorf("%q cannot be expected: want rule, remaining, remaining.RULE, says.RULE, retry, delay, cause or cost", name)
}

// causes are the names of sluice.Cause in traces.
var causes = [...]string{
	sluice.ByLimits: "limits", sluice.NoRule: "no_rule", sluice.Disabled: "disabled", sluice.Exempted: "exempt",
	sluice.BlockedByList: "blocked_by_list", sluice.BlockedByRule: "blocked_by_rule",
}
