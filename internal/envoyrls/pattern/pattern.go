// Package pattern is the written form of a descriptor's shape, as rules match on it: the keys of its entries in order, each
// with a value, the beginning of one, or none for any. It also names the attributes that carry a descriptor's parts.
package pattern

import (
	"errors"
	"fmt"
	"strings"
)

// The attributes that the Envoy door gives to requests, for rules that match on them or count by them. Attribute is the
// pattern that fits a descriptor best; Position(1) is the value of its first entry.
const (
	Attribute = "descriptor"
	// Beside is the pattern of another descriptor of the same call, where rules of the descriptor's own pattern ask for it.
	Beside = "descriptor.beside"
	// Limit is CallersLimit when the caller brought a limit of its own, and Entries then has all entries, keys and values.
	Limit        = "descriptor.limit"
	CallersLimit = "caller"
	Entries      = "descriptor.entries"
)

// Unlimited is the label of a rule with the action "allow" that Envoy hears of as an unlimited one.
const Unlimited = "unlimited"

// MaxDepth is how many entries a pattern has at most. It is the most that a descriptor may have.
const MaxDepth = 32

// Position names the attribute that holds the value of the n-th entry, counted from 1.
func Position(n int) string { return fmt.Sprintf("%s.%d", Attribute, n) }

// Pattern is a list of entries that a descriptor must have in this order, and no others.
type Pattern []Entry

// Entry is one level of a pattern.
type Entry struct {
	Key   string
	Kind  Kind
	Value string // of the kind Exact; of Prefix, what values begin with
}

// Kind says which values an entry fits.
type Kind uint8

// The kinds, from the one that is preferred.
const (
	Exact Kind = iota
	Prefix
	Any
)

// String returns the written form: "generic_key=api,path=/v1/*,remote_address". A backslash stands before commas, before
// equals signs of a key, and before a star that ends a value and means itself.
func (p Pattern) String() string {
	var b strings.Builder
	for i, e := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		escape(&b, e.Key, ",=")
		switch e.Kind {
		case Exact:
			b.WriteByte('=')
			plain, star := strings.CutSuffix(e.Value, "*")
			escape(&b, plain, ",")
			if star {
				b.WriteString(`\*`)
			}
		case Prefix:
			b.WriteByte('=')
			escape(&b, e.Value, ",")
			b.WriteByte('*')
		case Any:
		}
	}
	return b.String()
}

func escape(b *strings.Builder, text, special string) {
	for i := range len(text) {
		if c := text[i]; c == '\\' || strings.IndexByte(special, c) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
}

// Parse reads the written form.
func Parse(text string) (Pattern, error) {
	s := scanner{rest: text}
	var p Pattern
	for {
		e, err := s.entry()
		if err != nil {
			return nil, fmt.Errorf("descriptor pattern %q: entry %d: %w", text, len(p)+1, err)
		}
		p = append(p, e)
		if len(p) > MaxDepth {
			return nil, fmt.Errorf("descriptor pattern has more than %d entries: a descriptor never has so many", MaxDepth)
		}
		if s.rest == "" {
			return p, nil
		}
		s.rest = s.rest[1:] // the comma
	}
}

// scanner reads a pattern from left to right.
type scanner struct{ rest string }

func (s *scanner) entry() (Entry, error) {
	key, _, err := s.text(",=")
	if err != nil {
		return Entry{}, err
	}
	if key == "" {
		return Entry{}, errors.New("the key is missing: write it as key, key=value or key=begin*")
	}
	if !strings.HasPrefix(s.rest, "=") {
		return Entry{Key: key, Kind: Any}, nil
	}
	s.rest = s.rest[1:]
	value, star, err := s.text(",")
	if err != nil {
		return Entry{}, err
	}
	if star {
		return Entry{Key: key, Kind: Prefix, Value: value[:len(value)-1]}, nil
	}
	return Entry{Key: key, Kind: Exact, Value: value}, nil
}

// text reads up to a character of end that no backslash stands before, and tells whether a bare star came last.
func (s *scanner) text(end string) (text string, star bool, err error) {
	var b strings.Builder
	for s.rest != "" && strings.IndexByte(end, s.rest[0]) < 0 {
		c := s.rest[0]
		s.rest, star = s.rest[1:], c == '*'
		if c == '\\' {
			if s.rest == "" {
				return "", false, errors.New("a backslash ends it: write two for one")
			}
			c, s.rest = s.rest[0], s.rest[1:]
		}
		b.WriteByte(c)
	}
	return b.String(), star, nil
}
