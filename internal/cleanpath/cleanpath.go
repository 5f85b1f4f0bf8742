// Package cleanpath gives a request's path one spelling, so that the rules judge the path that the upstream will act on:
// "//api/search", "/api/./search" and "/api/%73earch" are all "/api/search". A path that servers are known to read in
// different ways has no such spelling and is an error.
package cleanpath

import (
	"errors"
	"strings"
)

// Path is a path in its one spelling.
type Path struct {
	// Escaped is how it is written in a request: dot segments and repeated slashes are gone, what needs no
	// percent-encoding has none.
	Escaped string
	// Decoded is Escaped without percent-encoding.
	Decoded string
	// Route is what rules see: Decoded, in which a question mark stays "%3F", because a route ends before its query.
	Route string
}

// The faults of a path.
var (
	ErrRelative = errors.New("the path does not begin with \"/\"")
	ErrEncoding = errors.New("the path has a \"%\" that two hexadecimal digits do not follow")
	ErrSlash    = errors.New("the path has an encoded slash or a backslash, which servers read in different ways")
	ErrControl  = errors.New("the path has a control character")
	ErrDots     = errors.New("the path has a dot segment with parameters, which servers read in different ways")
)

// Clean returns the one spelling of an escaped path, which ends before the query.
func Clean(escaped string) (Path, error) {
	if escaped == "" || escaped[0] != '/' {
		return Path{}, ErrRelative
	}
	if isClean(escaped) {
		return Path{escaped, escaped, escaped}, nil
	}
	one, err := respell(escaped)
	if err != nil {
		return Path{}, err
	}
	if one, err = removeDots(one); err != nil {
		return Path{}, err
	}
	p := Path{Escaped: one, Decoded: one, Route: one}
	if strings.Contains(one, "%") {
		p.Decoded, p.Route = decode(one, false), decode(one, true)
	}
	return p, nil
}

// isClean tells that a path is in its one spelling already, as nearly all are. It may fail to notice some.
func isClean(path string) bool {
	for i := range len(path) {
		if !isPlain(path[i]) || i > 0 && path[i-1] == '/' && (path[i] == '/' || path[i] == '.') {
			return false
		}
	}
	return true
}

// isUnreserved: RFC 3986 has these mean the same whether or not they are encoded.
func isUnreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

// isPlain tells what a path may contain as it is.
func isPlain(c byte) bool {
	return isUnreserved(c) || c == '/' || strings.IndexByte("!$&'()*+,;=:@[]", c) >= 0
}

const hexDigits = "0123456789ABCDEF"

// respell decodes what needs no encoding and encodes what does.
func respell(path string) (string, error) {
	var b strings.Builder
	b.Grow(len(path) + 16)
	for i := 0; i < len(path); i++ {
		c, encoded := path[i], false
		if c == '%' {
			if i+2 >= len(path) || !isHex(path[i+1]) || !isHex(path[i+2]) {
				return "", ErrEncoding
			}
			c, encoded = unhex(path[i+1])<<4|unhex(path[i+2]), true
			i += 2
		}
		switch {
		case c < ' ' || c == 0x7f:
			return "", ErrControl
		case c == '\\' || c == '/' && encoded:
			return "", ErrSlash
		case isUnreserved(c) || isPlain(c) && !encoded:
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
		}
	}
	return b.String(), nil
}

// removeDots takes out empty and dot segments. What would lead above the root stays at the root.
func removeDots(path string) (string, error) {
	var kept []string
	last := ""
	for segment := range strings.SplitSeq(path[1:], "/") {
		last = segment
		if name, _, params := strings.Cut(segment, ";"); params && (name == "." || name == "..") {
			return "", ErrDots
		}
		switch segment {
		case "", ".":
		case "..":
			kept = kept[:max(len(kept)-1, 0)]
		default:
			kept = append(kept, segment)
		}
	}
	clean := "/" + strings.Join(kept, "/")
	if len(kept) > 0 && (last == "" || last == "." || last == "..") {
		clean += "/"
	}
	return clean, nil
}

// decode takes the percent-encoding off a respelled path, on request but for question marks.
func decode(path string, keepQuestion bool) string {
	b := make([]byte, 0, len(path))
	for i := 0; i < len(path); i++ {
		if path[i] != '%' {
			b = append(b, path[i])
			continue
		}
		c := unhex(path[i+1])<<4 | unhex(path[i+2])
		i += 2
		if c == '?' && keepQuestion {
			b = append(b, "%3F"...)
		} else {
			b = append(b, c)
		}
	}
	return string(b)
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func unhex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	default:
		return c - 'a' + 10
	}
}
