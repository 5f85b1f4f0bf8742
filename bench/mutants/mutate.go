package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/redisstore"
)

// mutant is a script with one small fault in it.
type mutant struct {
	script string
	line   string // of the script, as it was
	change string
	text   string
}

// String names the mutant in the words of equivalent.txt.
func (m mutant) String() string { return m.script + " | " + m.line + " | " + m.change }

// mutants returns every mutant of a script, each text once.
func mutants(s *redisstore.Script) ([]mutant, error) {
	p, err := parse(s.Text)
	if err != nil {
		return nil, fmt.Errorf("script %s: %w", s.Name, err)
	}
	m := &mutator{parsed: p, script: s, texts: map[string]bool{s.Text: true}, changes: map[string]int{}}
	m.comparisons()
	m.operators()
	m.constants()
	m.branches()
	m.leaveOut()
	m.commands()
	m.lives()
	return m.found, nil
}

type mutator struct {
	parsed
	script  *redisstore.Script
	found   []mutant
	texts   map[string]bool
	changes map[string]int // how often a line has a change already
}

// replace adds the mutant in which some tokens are replaced by a text.
func (m *mutator) replace(s span, by string) {
	from, to := m.tokens[s.from].from, m.tokens[s.to-1].to
	was := m.script.Text[from:to]
	m.add(from, to, by, fmt.Sprintf("%s -> %s", was, by))
}

func (m *mutator) add(from, to int, by, change string) {
	text := m.script.Text[:from] + by + m.script.Text[to:]
	if m.texts[text] {
		return
	}
	m.texts[text] = true
	start := strings.LastIndexByte(m.script.Text[:from], '\n') + 1
	line, _, _ := strings.Cut(m.script.Text[start:], "\n")
	line = strings.TrimSpace(line)
	change = strings.Join(strings.Fields(change), " ")
	m.changes[line+change]++
	if n := m.changes[line+change]; n > 1 {
		change += fmt.Sprintf(" #%d", n)
	}
	m.found = append(m.found, mutant{m.script.Name, line, change, text})
}

func one(i int) span { return span{i, i + 1} }

// others are what each operator is replaced by: comparisons by their neighbour, their opposite and one more.
var others = map[string][]string{
	"<": {"<=", ">=", "~="}, "<=": {"<", ">", "=="}, ">": {">=", "<=", "~="}, ">=": {">", "<", "=="}, "==": {"~=", "<=", ">="}, "~=": {"==", "<", ">"},
	"+": {"-"}, "-": {"+"}, "*": {"/"}, "/": {"*"}, "%": {"/"}, "and": {"or"}, "or": {"and"},
	"true": {"false"}, "false": {"true"}, "min": {"max"}, "max": {"min"},
}

func (m *mutator) comparisons() {
	for _, i := range m.binary {
		if strings.ContainsAny(m.tokens[i].text, "<>=~") {
			for _, by := range others[m.tokens[i].text] {
				m.replace(one(i), by)
			}
		}
	}
}

func (m *mutator) operators() {
	for _, i := range m.binary {
		if !strings.ContainsAny(m.tokens[i].text, "<>=~") {
			for _, by := range others[m.tokens[i].text] {
				m.replace(one(i), by)
			}
		}
	}
	for _, i := range m.unary {
		switch m.tokens[i].text {
		case "-", "not":
			m.replace(one(i), "")
		case "#": // one more, one less
			m.replace(span{i, i + 2}, "("+m.tokens[i].text+m.tokens[i+1].text+"-1)")
			m.replace(span{i, i + 2}, "("+m.tokens[i].text+m.tokens[i+1].text+"+1)")
		}
	}
}

func (m *mutator) constants() {
	for i, t := range m.tokens {
		switch {
		case t.isNumber():
			n, _ := strconv.ParseInt(t.text, 10, 64)
			step := int64(1)
			if n >= 1<<53 {
				step = 2 // 2^53 + 1 is no double
			}
			for _, by := range []int64{n + step, n - 1, 0} {
				m.replace(one(i), strconv.FormatInt(by, 10))
			}
		case t.text == "true", t.text == "false", t.text == "min", t.text == "max":
			m.replace(one(i), others[t.text][0])
		}
	}
}

// branches makes each condition always or never true, and turns those round that are no single comparison.
func (m *mutator) branches() {
	for _, c := range m.conditions {
		m.replace(c, "true")
		m.replace(c, "false")
		words := m.tokens[c.from:c.to]
		if !slices.ContainsFunc(words, func(t token) bool { return len(others[t.text]) == 3 }) || slices.ContainsFunc(words, func(t token) bool { return t.text == "and" || t.text == "or" }) {
			m.replace(c, "not("+m.text(c)+")")
		}
	}
}

func (m *mutator) text(s span) string {
	return m.script.Text[m.tokens[s.from].from:m.tokens[s.to-1].to]
}

// leaveOut drops each assignment, clamp and write, and does each write twice.
func (m *mutator) leaveOut() {
	for _, s := range m.statements {
		from, to := m.tokens[s.from].from, m.tokens[s.to-1].to
		m.add(from, to, "", fmt.Sprintf("%s dropped: %s", s.kind, m.text(s.span)))
		if s.kind == "write" {
			m.add(from, to, m.text(s.span)+" "+m.text(s.span), "write twice: "+m.text(s.span))
		}
	}
}

// otherCommands are those that take the same arguments and do something else. Commands that would do the same (UNLINK
// for DEL, ZINCRBY for the ZADD of a new member) are left out.
var otherCommands = map[string][]string{
	"GET": {"GETDEL", "STRLEN"}, "INCRBY": {"DECRBY"}, "DECRBY": {"INCRBY"}, "DEL": {"EXISTS"},
	"ZRANGE": {"ZREVRANGE"}, "PEXPIRE": {"EXPIRE", "PEXPIREAT"}, "ZREM": {"ZADD"}, "ZCARD": {"PTTL"},
}

func (m *mutator) commands() {
	for _, c := range m.calls {
		command := strings.Trim(m.tokens[c.command].text, "'")
		for _, by := range otherCommands[command] {
			m.replace(one(c.command), "'"+by+"'")
		}
		last := c.args[len(c.args)-1]
		switch command {
		case "SET": // a third argument that makes it depend on what is there
			m.replace(c.args[2], m.text(c.args[2])+",'NX'")
		case "ZREMRANGEBYSCORE": // without the edge itself
			m.replace(last, "string.format('(%.0f',"+m.text(last)+")")
		case "ZADD": // no second member, no newer score
			m.replace(c.args[1], m.text(c.args[1])+",'XX'")
		}
	}
}

// lives changes for how long values live.
func (m *mutator) lives() {
	for _, c := range m.calls {
		for i, a := range c.args {
			switch m.text(a) {
			case "'PX'":
				m.replace(span{a.from - 1, c.args[i+1].to}, "")
				m.replace(a, "'EX'")
				m.replace(span{a.from, c.args[i+1].to}, "'KEEPTTL'")
				m.replace(c.args[i+1], m.text(c.args[i+1])+"+1")
				m.replace(c.args[i+1], m.text(c.args[i+1])+"-1")
			case "'KEEPTTL'":
				m.replace(span{a.from - 1, a.to}, "")
				m.replace(a, "'PX',60000")
			}
		}
	}
}
