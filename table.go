package sluice

import (
	"maps"
	"slices"
)

// table finds the rules that accept a value of one dimension.
type table struct {
	shelf *shelf
	rows  map[string]row // by the values that rules name
}

// pick picks the row of a value. A nil table, of a dimension no rule uses, picks none.
func (t *table) pick(p *picks, value string) {
	switch {
	case t == nil:
	case value == "":
		p.add(t.shelf, absentRow)
	default:
		p.add(t.shelf, t.rows[value])
	}
}

// picks are rows that the candidates must be in. They are looked up first and intersected afterwards, so that the look-ups,
// which wait for memory, do not wait for one another.
type picks struct {
	from *candidates
	n    int
	rows [10]pick // of more attributes than usual, ten at a time
}

type pick struct {
	shelf *shelf
	row   row
}

func (p *picks) add(s *shelf, r row) {
	if p.n == len(p.rows) {
		p.keep()
	}
	p.rows[p.n] = pick{s, r}
	p.n++
}

// keep removes the candidates that are not in all rows.
func (p *picks) keep() {
	for i := range p.rows[:p.n] {
		p.rows[i].shelf.keep(p.from, p.rows[i].row)
	}
	p.n = 0
}

// The rows of values that no rule names, and of none.
var (
	otherRow  = row{base: 0} // what a map answers for an unknown value: the rules that accept any
	absentRow = row{base: 1} // the rules that accept a request without a value: not those that count by the dimension
)

// dimensionUse gathers what the rules say about one dimension. Rules are told in rank order.
type dimensionUse struct {
	accepts numbersBy[string]
	closed  map[uint16]bool // rules that accept named values only
	counted map[uint16]bool // rules that count by the dimension, so need a value
}

func newDimensionUse() *dimensionUse {
	return &dimensionUse{accepts: numbersBy[string]{}, closed: map[uint16]bool{}, counted: map[uint16]bool{}}
}

func (d *dimensionUse) accept(n uint16, values ...string) {
	for _, v := range values {
		d.accepts.add(v, n)
		d.closed[n] = true
	}
}

// table returns the finished table, or nil when none of the rules uses the dimension.
func (d *dimensionUse) table(rules int) *table {
	shelf := d.shelf(rules)
	if shelf == nil {
		return nil
	}
	t := &table{shelf: shelf, rows: make(map[string]row, len(d.accepts))}
	for v, numbers := range d.accepts {
		t.rows[v] = shelf.put(numbers, otherRow)
	}
	shelf.seal()
	return t
}

// shelf returns one with otherRow and absentRow, or nil when none of the rules uses the dimension.
func (d *dimensionUse) shelf(rules int) *shelf {
	s := newShelf(slices.Concat(slices.Collect(maps.Keys(d.closed)), slices.Collect(maps.Keys(d.counted))))
	if s.size == 0 {
		return nil
	}
	other, absent := s.newBase(), s.newBase()
	for n := range uint16(rules) {
		if s.cares>>(n/pageRules)&1 == 0 || d.closed[n] {
			continue
		}
		*s.word(other, int(n)) |= 1 << (n % wordRules)
		if !d.counted[n] {
			*s.word(absent, int(n)) |= 1 << (n % wordRules)
		}
	}
	return s
}

// numbersBy gathers rule numbers by value. Numbers come in order, so a value that a rule names twice is the last one.
type numbersBy[V comparable] map[V][]uint16

func (b numbersBy[V]) add(value V, n uint16) {
	if list := b[value]; len(list) == 0 || list[len(list)-1] != n {
		b[value] = append(list, n)
	}
}
