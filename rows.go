package sluice

import "math/bits"

// The matcher works on sets of rule numbers, a bit for each rule. What it costs is set by memory that is not in the cache
// and branches that cannot be foreseen, much more than by the number of bits: so a set is read in pages of one cache
// line (512 rules), the pages read do not depend on the request, and the few rules that name a value lie beside it.

// MaxRules is how many rules one namespace holds. Matching keeps a bit per rule on the stack: 1.3 kB at this size.
const MaxRules = 10_000

const (
	wordRules = 64
	pageWords = 8
	pageRules = pageWords * wordRules
	maxPages  = (MaxRules + pageRules - 1) / pageRules
)

// page is the part of a set that fits a cache line.
type page [pageWords]uint64

// candidates are the rules that no dimension has ruled out yet. It lives on the stack of a match.
type candidates [maxPages * pageWords]uint64

func (c *candidates) page(p int) *page { return (*page)(c[p*pageWords:]) }

// next returns the lowest rule number at or above from, or -1 when the words before end hold none. In the last of these
// words it may find one above end.
func (c *candidates) next(from, end int) int {
	if from >= end {
		return -1
	}
	w := from / wordRules
	if x := c[w] >> (from % wordRules); x != 0 {
		return from + bits.TrailingZeros64(x)
	}
	for w++; w*wordRules < end; w++ {
		if c[w] != 0 {
			return w*wordRules + bits.TrailingZeros64(c[w])
		}
	}
	return -1
}

// keep removes the rules of a page that are not in q. It is written out because Go does not unroll loops.
func (p *page) keep(q *page) {
	p[0] &= q[0]
	p[1] &= q[1]
	p[2] &= q[2]
	p[3] &= q[3]
	p[4] &= q[4]
	p[5] &= q[5]
	p[6] &= q[6]
	p[7] &= q[7]
}

// row is a set of rules on a shelf: those of a base, which many rows share, and besides those in one word. Most values
// are named by the rules of one word only. The zero row is base 0.
type row struct {
	bits uint64
	base uint32
	word uint16
}

// shelf holds the bases of rows. It stores only the pages in which its sets differ.
type shelf struct {
	cares uint32 // those pages
	size  int    // how many they are
	pages []page // base after base

	shared map[rowID]uint32 // bases by what was asked for, so that values which the same rules name share one; see seal
}

type rowID struct {
	over    row
	numbers string
}

// A shelf tells its pages by the bits of a uint32.
var _ [32 - maxPages]struct{}

// newShelf returns a shelf for sets that differ only in pages where one of the numbers lies.
func newShelf(numbers []uint16) *shelf {
	s := &shelf{shared: map[rowID]uint32{}}
	for _, n := range numbers {
		s.cares |= 1 << (n / pageRules)
	}
	s.size = bits.OnesCount32(s.cares)
	return s
}

// keep removes the candidates that are not in the row.
func (s *shelf) keep(c *candidates, r row) {
	saved := c[r.word] & r.bits
	base := s.base(r.base)
	for m := s.cares; m != 0; m &= m - 1 {
		c.page(bits.TrailingZeros32(m)).keep(&base[0])
		base = base[1:]
	}
	c[r.word] |= saved
}

// add makes the rules of the row candidates.
func (s *shelf) add(c *candidates, r row) {
	c[r.word] |= r.bits
	if r.base == 0 {
		return // which is empty on a shelf whose rows are added
	}
	base := s.base(r.base)
	for m := s.cares; m != 0; m &= m - 1 {
		for w, x := range base[0] {
			c.page(bits.TrailingZeros32(m))[w] |= x
		}
		base = base[1:]
	}
}

// has tells whether a rule, of a page that the shelf stores, is in the row.
func (s *shelf) has(r row, n int) bool {
	x := *s.word(r.base, n)
	if n/wordRules == int(r.word) {
		x |= r.bits
	}
	return x>>(n%wordRules)&1 == 1
}

func (s *shelf) base(b uint32) []page {
	return s.pages[int(b)*s.size:][:s.size]
}

// word returns the word of a base that holds a rule.
func (s *shelf) word(b uint32, n int) *uint64 {
	before := s.cares & (1<<(n/pageRules) - 1)
	return &s.base(b)[bits.OnesCount32(before)][n%pageRules/wordRules]
}

// put returns the row of the sorted numbers and all that is in another row.
func (s *shelf) put(numbers []uint16, over row) row {
	if len(numbers) == 0 {
		return over
	}
	first, last := numbers[0]/wordRules, numbers[len(numbers)-1]/wordRules
	if over.bits != 0 && over.word != first {
		over = row{base: s.putBase(nil, over)}
	}
	if first != last {
		return row{base: s.putBase(numbers, over)}
	}
	over.word = first
	for _, n := range numbers {
		over.bits |= 1 << (n % wordRules)
	}
	return over
}

// putBase returns the base that is all that is in a row, and the numbers.
func (s *shelf) putBase(numbers []uint16, over row) uint32 {
	text := make([]byte, 0, 2*len(numbers))
	for _, n := range numbers {
		text = append(text, byte(n>>8), byte(n))
	}
	id := rowID{over, string(text)}
	b, ok := s.shared[id]
	if ok {
		return b
	}
	b = s.newBase()
	s.shared[id] = b
	copy(s.base(b), s.base(over.base))
	if over.bits != 0 {
		*s.word(b, int(over.word)*wordRules) |= over.bits
	}
	for _, n := range numbers {
		*s.word(b, int(n)) |= 1 << (n % wordRules)
	}
	return b
}

// newBase returns an empty base.
func (s *shelf) newBase() uint32 {
	s.pages = append(s.pages, make([]page, s.size)...)
	return uint32(len(s.pages)/s.size - 1)
}

// seal ends the building and frees what only that needs.
func (s *shelf) seal() { s.shared = nil }
