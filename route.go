package sluice

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

// The bounds of a route pattern. They bound the depth of the trie and so of its recursion; paths need no bound, since
// what a path has beyond the longest pattern only a final "*" can match, which does not look at it.
const (
	maxRouteSegments = 64
	maxRouteLength   = 1024
)

// anyRoute is the pattern that matches every route, whether or not it starts with a slash.
const anyRoute = "*"

// routeSegment is one part between slashes. The kinds are in order of specificity.
type routeSegment struct {
	kind segmentKind
	text string // of a literal
}

type segmentKind uint8

const (
	literalSegment  segmentKind = iota
	paramSegment                // {name}: one segment that is not empty
	wildcardSegment             // *, last only: the rest, also when it is empty
)

// nextSegment reads a checked pattern up to its next slash. It allocates nothing.
func nextSegment(pattern string) (s routeSegment, rest string, more bool) {
	text, rest, more := strings.Cut(pattern, "/")
	switch {
	case text == "*":
		return routeSegment{kind: wildcardSegment}, rest, more
	case strings.HasPrefix(text, "{"):
		return routeSegment{kind: paramSegment}, rest, more
	}
	return routeSegment{text: text}, rest, more
}

// checkRoute tells what is wrong with a pattern.
func checkRoute(pattern string) error {
	switch {
	case pattern == anyRoute:
		return nil
	case pattern == "":
		return errors.New("pattern is empty")
	case pattern[0] != '/':
		return fmt.Errorf("pattern %q does not start with \"/\"", pattern)
	case len(pattern) > maxRouteLength:
		return fmt.Errorf("pattern is %d bytes long: the most is %d", len(pattern), maxRouteLength)
	case strings.ContainsRune(pattern, '?'):
		return fmt.Errorf("pattern %q contains \"?\": routes are matched without their query", pattern)
	case !printable(pattern):
		return fmt.Errorf("pattern %q contains a control character or is not UTF-8", pattern)
	case strings.Count(pattern, "/") > maxRouteSegments:
		return fmt.Errorf("pattern has %d segments: the most is %d", strings.Count(pattern, "/"), maxRouteSegments)
	}
	segments := strings.Split(pattern[1:], "/")
	for i, s := range segments {
		if err := checkSegment(s, i == len(segments)-1); err != nil {
			return fmt.Errorf("pattern %q: %w", pattern, err)
		}
	}
	return nil
}

func checkSegment(s string, last bool) error {
	switch {
	case s == "*" && !last:
		return errors.New("\"*\" stands only at the end; use {name} for one segment")
	case s == "*":
		return nil
	case strings.Contains(s, "*"):
		return fmt.Errorf("segment %q: \"*\" stands only for whole segments", s)
	case !strings.ContainsAny(s, "{}"):
		return nil
	}
	name, opened := strings.CutPrefix(s, "{")
	name, closed := strings.CutSuffix(name, "}")
	if !opened || !closed {
		return fmt.Errorf("segment %q: a parameter is a whole segment, such as {id}", s)
	}
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !isNameRune(r) }) {
		return fmt.Errorf("segment %q: a parameter's name is made of letters, digits, \"_\", \"-\" and \".\"", s)
	}
	return nil
}

func isNameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.'
}

// routeShape is how specific a pattern is: first by its literal segments, then by having no wildcard, then by its parameters.
type routeShape struct {
	literals, params int
	open             bool // ends with a wildcard
}

func shapeOf(pattern string) routeShape {
	if pattern == anyRoute {
		return routeShape{params: -1, open: true} // broader than "/*"
	}
	var shape routeShape
	for rest, more := pattern[1:], true; more; {
		var s routeSegment
		s, rest, more = nextSegment(rest)
		switch s.kind {
		case literalSegment:
			shape.literals++
		case paramSegment:
			shape.params++
		case wildcardSegment:
			shape.open = true
		}
	}
	return shape
}

// compare is negative when s is more specific than t.
func (s routeShape) compare(t routeShape) int {
	if n := cmp.Compare(t.literals, s.literals); n != 0 {
		return n
	}
	if s.open != t.open {
		if t.open {
			return -1
		}
		return 1
	}
	return cmp.Compare(t.params, s.params)
}

// compareRoutes orders patterns, the more specific first. Where the shapes are equal, the one whose first different
// segment is the literal comes first; then the text decides, so that the order is total.
func compareRoutes(a, b string) int {
	if n := shapeOf(a).compare(shapeOf(b)); n != 0 {
		return n
	}
	for x, y := a, b; ; {
		p, restX, moreX := nextSegment(x)
		q, restY, moreY := nextSegment(y)
		if p.kind != q.kind {
			return cmp.Compare(p.kind, q.kind)
		}
		if !moreX || !moreY {
			return strings.Compare(a, b)
		}
		x, y = restX, restY
	}
}

// routeMatches tells whether a pattern matches a path, which ends before its query.
func routeMatches(pattern, path string) bool {
	if pattern == anyRoute {
		return path != ""
	}
	if path == "" || path[0] != '/' {
		return false
	}
	pattern, path = pattern[1:], path[1:]
	for {
		s, rest, more := nextSegment(pattern)
		if s.kind == wildcardSegment {
			return true
		}
		part, tail, deeper := strings.Cut(path, "/")
		switch {
		case s.kind == paramSegment && part == "", s.kind == literalSegment && part != s.text, more != deeper:
			return false
		case !more:
			return true
		}
		pattern, path = rest, tail
	}
}

// routeCovers tells whether pattern a matches every path that b matches.
func routeCovers(a, b string) bool {
	if a == anyRoute || b == anyRoute {
		return a == anyRoute
	}
	for x, y := a[1:], b[1:]; ; {
		p, restX, moreX := nextSegment(x)
		q, restY, moreY := nextSegment(y)
		switch {
		case p.kind == wildcardSegment:
			return true // whatever b has here, it has the slash before it
		case q.kind == wildcardSegment, moreX != moreY,
			p.kind == paramSegment && q.kind == literalSegment && q.text == "",
			p.kind == literalSegment && p != q:
			return false
		case !moreX:
			return true
		}
		x, y = restX, restY
	}
}

// pathOf cuts the query off a request's route.
func pathOf(route string) string {
	if i := strings.IndexByte(route, '?'); i >= 0 {
		return route[:i]
	}
	return route
}

// examplePath returns a path that the pattern matches, with open where it leaves a segment open.
func examplePath(pattern, open string) string {
	parts := strings.Split(pattern, "/")
	for i, part := range parts {
		if part == "*" || strings.HasPrefix(part, "{") {
			parts[i] = open
		}
	}
	return strings.Join(parts, "/")
}
