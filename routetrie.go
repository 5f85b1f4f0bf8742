package sluice

import (
	"maps"
	"slices"
	"strings"
)

// routeTrie finds the rules whose routes match a path. Every node stands for one sequence of segments, so a walk visits
// a node at most once, and no more nodes than there are segments in all patterns; in practice one or two per segment.
type routeTrie struct {
	shelf *shelf
	open  []page    // the rules without routes, which accept any path and none
	any   *routeEnd // the pattern "*"
	root  routeNode
}

// routeNode fits a cache line.
type routeNode struct {
	few   []routeChild          // literal children while they are few: comparing is then faster than hashing
	many  map[string]*routeNode // all literal children once they are not
	param *routeNode
	end   *routeEnd // patterns that end at this node
	rest  *routeEnd // patterns that go on with a final "*"
}

type routeChild struct {
	text string
	node *routeNode
}

// maxFewChildren is where comparing literals one by one begins to cost more than hashing.
const maxFewChildren = 4

// routeEnd is one pattern and the rules that have it. Patterns that differ only in the names of their parameters share a
// node but not an end, because the pattern's text is what rules count by.
type routeEnd struct {
	rules   row
	order   int // place among all patterns, the most specific first
	pattern string
	next    *routeEnd // another end of the same node
}

// newRouteTrie builds the trie of rules in rank order.
func newRouteTrie(rules []ranked) *routeTrie {
	t := &routeTrie{open: make([]page, (len(rules)+pageRules-1)/pageRules)}
	use := numbersBy[string]{}
	var routed []uint16
	for i := range rules {
		for _, pattern := range rules[i].rule.Match.Routes {
			use.add(pattern, uint16(i))
		}
		if len(rules[i].rule.Match.Routes) > 0 {
			routed = append(routed, uint16(i))
		} else {
			t.open[i/pageRules][i%pageRules/wordRules] |= 1 << (i % wordRules)
		}
	}
	t.shelf = newShelf(routed)
	if len(routed) == 0 {
		return t
	}
	none := row{base: t.shelf.newBase()}
	texts := map[string]string{}
	for i, pattern := range slices.SortedFunc(maps.Keys(use), compareRoutes) {
		t.insert(&routeEnd{pattern: pattern, order: i, rules: t.shelf.put(use[pattern], none)}, texts)
	}
	t.shelf.seal()
	return t
}

// insert adds an end. Literals that are equal become one of the texts, so that "items" below a thousand services is in
// the cache.
func (t *routeTrie) insert(end *routeEnd, texts map[string]string) {
	at := &t.any
	if end.pattern != anyRoute {
		at = t.place(end.pattern[1:], texts)
	}
	end.next, *at = *at, end
}

// place returns where the ends of a pattern hang, which is given without its first slash.
func (t *routeTrie) place(pattern string, texts map[string]string) **routeEnd {
	n := &t.root
	for {
		s, rest, more := nextSegment(pattern)
		if s.kind == wildcardSegment {
			return &n.rest
		}
		if _, known := texts[s.text]; !known {
			texts[s.text] = s.text
		}
		s.text = texts[s.text]
		if n = n.grow(s); !more {
			return &n.end
		}
		pattern = rest
	}
}

// grow returns the node below n for a segment, and makes it when there is none.
func (n *routeNode) grow(s routeSegment) *routeNode {
	if s.kind == paramSegment {
		if n.param == nil {
			n.param = &routeNode{}
		}
		return n.param
	}
	if child := n.literal(s.text); child != nil {
		return child
	}
	child := &routeNode{}
	switch {
	case n.many != nil:
		n.many[s.text] = child
	case len(n.few) < maxFewChildren:
		n.few = append(n.few, routeChild{s.text, child})
	default:
		n.many = map[string]*routeNode{s.text: child}
		for _, c := range n.few {
			n.many[c.text] = c.node
		}
		n.few = nil
	}
	return child
}

// literal returns the node below n for a literal segment, or nil.
func (n *routeNode) literal(text string) *routeNode {
	for i := range n.few {
		if n.few[i].text == text {
			return n.few[i].node
		}
	}
	if n.many == nil {
		return nil
	}
	return n.many[text]
}

// maxRouteHits is how many matching patterns a match remembers. A path that matches more is matched all the same, but
// the winner's own patterns are then tried one by one to find the one that matched.
const maxRouteHits = 16

// routeWalk is one search: the rules found so far, and the patterns they were found by.
type routeWalk struct {
	trie  *routeTrie
	found *candidates
	n     int // may exceed the length of hits
	hits  [maxRouteHits]*routeEnd
}

// find adds to the candidates the rules without routes and those with a route that matches the path.
func (t *routeTrie) find(w *routeWalk, path string) {
	w.trie = t
	for p := range t.open {
		*w.found.page(p) = t.open[p]
	}
	if path == "" {
		return
	}
	w.hit(t.any)
	if path[0] == '/' {
		t.root.find(w, path[1:])
	}
}

// find goes on below n with what follows the last slash.
func (n *routeNode) find(w *routeWalk, path string) {
	for {
		w.hit(n.rest)
		part, tail, deeper := path, "", false
		if i := strings.IndexByte(path, '/'); i >= 0 {
			part, tail, deeper = path[:i], path[i+1:], true
		}
		literal, param := n.literal(part), n.param
		if part == "" {
			param = nil
		}
		if !deeper {
			if literal != nil {
				w.hit(literal.end)
			}
			if param != nil {
				w.hit(param.end)
			}
			return
		}
		// Recursion is for the branch only, so that plain tries are walked in a loop.
		if literal != nil && param != nil {
			literal.find(w, tail)
			literal = nil
		}
		if n = literal; n == nil {
			n = param
		}
		if n == nil {
			return
		}
		path = tail
	}
}

// hit takes note of a node's ends.
func (w *routeWalk) hit(end *routeEnd) {
	for ; end != nil; end = end.next {
		w.trie.shelf.add(w.found, end.rules)
		if w.n < maxRouteHits {
			w.hits[w.n] = end
		}
		w.n++
	}
}

// patternOf returns the most specific of a candidate's routes that matched the path, "" when it has none. It does not
// look at the rule if it can help it: rules are large and not in the cache.
func (w *routeWalk) patternOf(number int, rule *Rule, path string) string {
	if w.trie.open[number/pageRules][number%pageRules/wordRules]>>(number%wordRules)&1 == 1 {
		return ""
	}
	if w.n > maxRouteHits {
		return mostSpecificRoute(rule.Match.Routes, path)
	}
	var best *routeEnd
	for _, end := range w.hits[:w.n] {
		if (best == nil || end.order < best.order) && w.trie.shelf.has(end.rules, number) {
			best = end
		}
	}
	return best.pattern // a rule with routes is a candidate only because one of them matched
}

func mostSpecificRoute(patterns []string, path string) string {
	best := ""
	for _, pattern := range patterns {
		if routeMatches(pattern, path) && (best == "" || compareRoutes(pattern, best) < 0) {
			best = pattern
		}
	}
	return best
}
