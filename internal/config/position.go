package config

import (
	"sort"

	"github.com/pelletier/go-toml/v2/unstable"
)

// positions knows where each key of a TOML document was written, by its path.
type positions struct {
	at    map[string]place
	lines []int // offset of each line's first byte
	// count is how many tables each list of tables has so far.
	count map[string]int
	parse unstable.Parser
}

type place struct{ line, column int }

// locate finds the places of all keys. The document must be valid; of an invalid one it knows what it could read.
// A value's bytes are not kept.
func locate(doc []byte) *positions {
	p := &positions{at: map[string]place{}, count: map[string]int{}, lines: []int{0}}
	for i, c := range doc {
		if c == '\n' {
			p.lines = append(p.lines, i+1)
		}
	}
	p.parse.Reset(doc)
	prefix := ""
	for p.parse.NextExpression() {
		switch e := p.parse.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			prefix = p.header(e)
		case unstable.KeyValue:
			p.keyValue(prefix, e)
		default: // a comment
		}
	}
	return p
}

// header returns the path of a table's header, with the index of every list on the way.
func (p *positions) header(e *unstable.Node) string {
	path := ""
	for it := e.Key(); it.Next(); {
		key := it.Node()
		path = joinKey(path, string(key.Data))
		if e.Kind == unstable.ArrayTable && it.IsLast() {
			n := p.count[path]
			p.count[path] = n + 1
			path = indexed(path, n)
		} else if n := p.count[path]; n > 0 {
			path = indexed(path, n-1)
		}
		p.note(path, key)
	}
	return path
}

func (p *positions) keyValue(prefix string, e *unstable.Node) {
	path := prefix
	for it := e.Key(); it.Next(); {
		path = joinKey(path, string(it.Node().Data))
		p.note(path, it.Node())
	}
	p.value(path, e.Value())
}

func (p *positions) value(path string, v *unstable.Node) {
	switch v.Kind {
	case unstable.InlineTable:
		for it := v.Children(); it.Next(); {
			if it.Node().Kind == unstable.KeyValue {
				p.keyValue(path, it.Node())
			}
		}
	case unstable.Array:
		i := 0
		for it := v.Children(); it.Next(); {
			if it.Node().Kind == unstable.Comment {
				continue
			}
			p.note(indexed(path, i), it.Node())
			p.value(indexed(path, i), it.Node())
			i++
		}
	default:
	}
}

// note keeps the first place of a path.
func (p *positions) note(path string, n *unstable.Node) {
	if _, known := p.at[path]; known || n.Raw.Length == 0 {
		return
	}
	offset := int(n.Raw.Offset)
	line := sort.SearchInts(p.lines, offset+1)
	p.at[path] = place{line, offset - p.lines[line-1] + 1}
}
