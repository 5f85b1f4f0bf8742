package envoyrls

import (
	"cmp"
	"slices"
	"strings"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"github.com/sluicehq/sluice/internal/envoyrls/pattern"
)

// node is a level of the tree of all patterns that the rules of a domain name. A descriptor walks down from the root, by an
// entry a level, and what it arrives at is its pattern. It never turns back: where a value has a branch of its own,
// the branch for any value is not tried, whatever lies below. That is how the reference service reads its configuration,
// so imported rules mean what they meant.
type node struct {
	text      string // the pattern that ends here; "" where none does
	positions uint64 // the entries, by bit, whose values the pattern's rules ask for
	children  map[string]*branch
}

// branch is what follows under one key.
type branch struct {
	exact    map[string]*node
	prefixes []prefix // the longest first
	other    *node    // nil when no pattern takes any value
}

type prefix struct {
	value string
	node  *node
}

// find returns the node of a descriptor's entries, or nil when there is none.
func (n *node) find(entries []*ratelimit.RateLimitDescriptor_Entry) *node {
	for _, e := range entries {
		b := n.children[e.GetKey()]
		if b == nil {
			return nil
		}
		if n = b.find(e.GetValue()); n == nil {
			return nil
		}
	}
	return n
}

func (b *branch) find(value string) *node {
	if n := b.exact[value]; n != nil {
		return n
	}
	for i := range b.prefixes {
		if strings.HasPrefix(value, b.prefixes[i].value) {
			return b.prefixes[i].node
		}
	}
	return b.other
}

// put returns the node of a pattern, making what is missing on the way.
func (n *node) put(p pattern.Pattern) *node {
	for _, e := range p {
		if n.children == nil {
			n.children = map[string]*branch{}
		}
		b := n.children[e.Key]
		if b == nil {
			b = &branch{exact: map[string]*node{}}
			n.children[e.Key] = b
		}
		n = b.put(e)
	}
	return n
}

func (b *branch) put(e pattern.Entry) *node {
	switch e.Kind {
	case pattern.Exact:
		if b.exact[e.Value] == nil {
			b.exact[e.Value] = &node{}
		}
		return b.exact[e.Value]
	case pattern.Prefix:
		for _, p := range b.prefixes {
			if p.value == e.Value {
				return p.node
			}
		}
		fresh := prefix{e.Value, &node{}}
		b.prefixes = append(b.prefixes, fresh)
		slices.SortFunc(b.prefixes, func(p, q prefix) int {
			return cmp.Or(cmp.Compare(len(q.value), len(p.value)), strings.Compare(p.value, q.value))
		})
		return fresh.node
	default:
		if b.other == nil {
			b.other = &node{}
		}
		return b.other
	}
}
