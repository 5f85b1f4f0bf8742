package main

import (
	"fmt"
	"strings"
)

// span is a run of tokens, the last one excluded.
type span struct{ from, to int }

// parsed is what the mutator wants to know of a script.
type parsed struct {
	tokens []token

	binary     []int       // tokens that are binary operators
	unary      []int       // and unary ones
	conditions []span      // of if and elseif
	calls      []redisCall // of Redis
	statements []statement // that can be left out, or done twice
}

// redisCall is one call(…).
type redisCall struct {
	command int // its token
	args    []span
}

// statement is an assignment, a call, or an if without an else that holds assignments only, such as a clamp.
type statement struct {
	span
	kind string // assignment, write, clamp
}

// parser walks over tokens by recursive descent. It panics on what it does not know; parse turns that into an error.
type parser struct {
	parsed
	at int
}

func parse(text string) (p parsed, err error) {
	tokens, err := lex(text)
	if err != nil {
		return p, err
	}
	w := &parser{parsed: parsed{tokens: tokens}}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("at token %d: %v", w.at, r)
		}
	}()
	w.block()
	if w.at != len(tokens) {
		return p, fmt.Errorf("stopped at %q", w.peek())
	}
	return w.parsed, nil
}

func (w *parser) peek() string {
	if w.at < len(w.tokens) {
		return w.tokens[w.at].text
	}
	return ""
}

func (w *parser) accept(text string) bool {
	if w.peek() != text {
		return false
	}
	w.at++
	return true
}

func (w *parser) expect(text string) {
	if !w.accept(text) {
		panic(fmt.Sprintf("%q instead of %q", w.peek(), text))
	}
}

// block reads statements and tells whether all were assignments.
func (w *parser) block() (assignmentsOnly bool) {
	assignmentsOnly = true
	for {
		switch w.peek() {
		case "", "end", "else", "elseif":
			return assignmentsOnly
		}
		if !w.statement() {
			assignmentsOnly = false
		}
	}
}

// statement reads one and tells whether it is an assignment.
func (w *parser) statement() bool {
	from := w.at
	switch w.peek() {
	case "local":
		w.at++
		w.list(func() { w.at++ })
		if w.accept("=") {
			w.list(w.expr)
		}
		return false
	case "return":
		w.at++
		w.expr()
		return false
	case "for":
		w.at += 2
		w.expect("=")
		w.list(w.expr)
		w.expect("do")
		w.block()
		w.expect("end")
		return false
	case "while":
		w.at++
		w.expr()
		w.expect("do")
		w.block()
		w.expect("end")
		return false
	case "if":
		if w.branches() {
			w.statements = append(w.statements, statement{span{from, w.at}, "clamp"})
		}
		return false
	}
	w.suffixed()
	if w.peek() != "=" && w.peek() != "," {
		w.statements = append(w.statements, statement{span{from, w.at}, "write"})
		return false
	}
	for w.accept(",") {
		w.suffixed()
	}
	w.expect("=")
	w.list(w.expr)
	w.statements = append(w.statements, statement{span{from, w.at}, "assignment"})
	return true
}

// branches reads an if and tells whether it may be left out as a whole.
func (w *parser) branches() bool {
	clamp, n := true, 0
	for w.accept("if") || w.accept("elseif") {
		from := w.at
		w.expr()
		w.conditions = append(w.conditions, span{from, w.at})
		w.expect("then")
		clamp = w.block() && clamp
		n++
	}
	if w.accept("else") {
		clamp = false
		w.block()
	}
	w.expect("end")
	return clamp && n == 1
}

func (w *parser) list(one func()) {
	one()
	for w.accept(",") {
		one()
	}
}

// precedence of binary operators, from the loosest.
var precedence = []string{" or ", " and ", " < > <= >= ~= == ", " .. ", " + - ", " * / % "}

func (w *parser) expr() { w.level(0) }

func (w *parser) level(n int) {
	if n == len(precedence) {
		w.operand()
		return
	}
	w.level(n + 1)
	for w.peek() != "" && strings.Contains(precedence[n], " "+w.peek()+" ") {
		w.binary = append(w.binary, w.at)
		w.at++
		w.level(n + 1)
	}
}

func (w *parser) operand() {
	switch w.peek() {
	case "-", "#", "not":
		w.unary = append(w.unary, w.at)
		w.at++
		w.operand()
	default:
		w.suffixed()
	}
}

// suffixed reads a value with its indices and calls.
func (w *parser) suffixed() {
	start := w.at
	switch w.peek() {
	case "(":
		w.at++
		w.expr()
		w.expect(")")
	case "{":
		w.at++
		if w.peek() != "}" {
			w.list(w.expr)
		}
		w.expect("}")
	default:
		w.at++
	}
	for {
		switch w.peek() {
		case "[":
			w.at++
			w.expr()
			w.expect("]")
		case ".", ":":
			w.at += 2
		case "(":
			w.arguments(w.tokens[start].text == "call" || w.tokens[w.at-1].text == "call")
		default:
			return
		}
	}
}

func (w *parser) arguments(ofRedis bool) {
	w.expect("(")
	c := redisCall{command: w.at}
	if w.peek() != ")" {
		w.list(func() {
			from := w.at
			w.expr()
			c.args = append(c.args, span{from, w.at})
		})
	}
	w.expect(")")
	if ofRedis {
		w.calls = append(w.calls, c)
	}
}
