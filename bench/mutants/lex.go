package main

import (
	"fmt"
	"strings"
)

// The mutator reads scripts by a parser of the Lua they are written in, so that it knows a subtraction from a sign, a
// condition from a value, and where a statement ends.

// token is a word, a number, a text or an operator of a script. Comments and spaces are none.
type token struct {
	text     string
	from, to int // bytes in the script
}

func (t token) isNumber() bool { return t.text[0] >= '0' && t.text[0] <= '9' }

func isLetter(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// lex splits a script into tokens.
func lex(text string) ([]token, error) {
	var list []token
	for i := 0; i < len(text); {
		n := 1
		switch c := text[i]; {
		case c == ' ' || c == '\n':
			i++
			continue
		case strings.HasPrefix(text[i:], "--"):
			n = strings.IndexByte(text[i:]+"\n", '\n')
			i += n
			continue
		case isLetter(c):
			for i+n < len(text) && (isLetter(text[i+n]) || text[i+n] >= '0' && text[i+n] <= '9') {
				n++
			}
		case c >= '0' && c <= '9':
			for i+n < len(text) && text[i+n] >= '0' && text[i+n] <= '9' {
				n++
			}
		case c == '\'':
			end := strings.IndexByte(text[i+1:], '\'')
			if end < 0 {
				return nil, fmt.Errorf("text without an end at %d", i)
			}
			n = end + 2
		case strings.Contains("== ~= <= >= ..", text[i:min(i+2, len(text))]) && i+2 <= len(text) && text[i+1] != ' ':
			n = 2
		case !strings.ContainsRune("+-*/%#<>=(){}[].:,", rune(c)):
			return nil, fmt.Errorf("unknown character %q at %d", c, i)
		}
		list = append(list, token{text[i : i+n], i, i + n})
		i += n
	}
	return list, nil
}
