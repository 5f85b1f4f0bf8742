package edge

import "strings"

// lastCommaOutsideQuotes returns the index of the comma before the last element, or -1. It reads from the right, because
// the right end was written by a proxy and the left by anyone: read from the left, a client's open quote would
// swallow the comma that the proxy put behind it.
func lastCommaOutsideQuotes(s string) int {
	inside := false
	for i := len(s) - 1; i >= 0; i-- {
		switch {
		case s[i] == '"' && (!inside || !escaped(s, i)):
			inside = !inside
		case s[i] == ',' && !inside:
			return i
		}
	}
	return -1
}

// escaped tells whether an odd number of backslashes stands before s[i].
func escaped(s string, i int) bool {
	n := 0
	for i > n && s[i-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// forwardedFor returns the node of one element of Forwarded (RFC 7239): its parameter "for". It is strict about what
// holds the element together (names, quotes, each name once), because an element that can be read in two ways tells nothing.
func forwardedFor(element string) (node string, ok bool) {
	rest, seen := element, false
	for {
		var name, value string
		if name, value, rest, ok = cutPair(rest); !ok {
			return "", false
		}
		if strings.EqualFold(name, "for") {
			if seen {
				return "", false
			}
			node, seen = value, true
		}
		if rest == "" {
			return node, seen
		}
		if rest[0] != ';' {
			return "", false
		}
		rest = rest[1:]
	}
}

// cutPair reads name=value, with the spaces around it.
func cutPair(s string) (name, value, rest string, ok bool) {
	name, rest, ok = strings.Cut(trimSpace(s), "=")
	if !ok || !isToken(name) || rest == "" {
		return "", "", "", false
	}
	if rest[0] == '"' {
		value, rest, ok = unquote(rest[1:])
		return name, value, trimSpace(rest), ok
	}
	// The RFC wants IPv6 and ports in quotes; proxies forget them, and there is one way to read that.
	end := strings.IndexByte(rest, ';')
	if end < 0 {
		end = len(rest)
	}
	value = trimSpace(rest[:end])
	return name, value, rest[end:], value != "" && !strings.ContainsAny(value, "\" \t,")
}

// unquote reads a quoted string whose opening quote is gone. Without a backslash, which no address needs, it does not
// allocate.
func unquote(s string) (value, rest string, ok bool) {
	end := strings.IndexAny(s, `"\`)
	if end < 0 {
		return "", "", false
	}
	if s[end] == '"' {
		return s[:end], s[end+1:], true
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:], true
		case '\\':
			if i++; i == len(s) {
				return "", "", false
			}
		}
		b.WriteByte(s[i])
	}
	return "", "", false
}

// isToken tells whether s is a token as HTTP means it.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}
