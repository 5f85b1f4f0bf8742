package ruledoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// parseJSON makes a tree of a JSON text. It reads token by token, since the decoder tells places only of syntax errors, and
// takes a name given twice.
func parseJSON(s *source) (*node, *Fault) {
	t := jsonTree{source: s, decoder: json.NewDecoder(bytes.NewReader(s.data))}
	t.decoder.UseNumber()
	root, err := t.next(0)
	if err == nil {
		if _, end := t.decoder.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("something follows the end of the object")
		}
	}
	if err != nil {
		at := s.place(int(t.decoder.InputOffset()))
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			at = s.place(int(max(syntax.Offset-1, 0)))
		} else if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("it ends too early")
		}
		f := s.fault(at, fmt.Errorf("not JSON: %w", err))
		return nil, &f
	}
	return root, nil
}

type jsonTree struct {
	source  *source
	decoder *json.Decoder
}

// next reads one value.
func (t *jsonTree) next(depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested more than %d deep", maxDepth)
	}
	tok, at, err := t.token()
	if err != nil {
		return nil, err
	}
	switch tok := tok.(type) {
	case json.Delim:
		if tok == '{' {
			return t.object(at, depth)
		}
		items := list{}
		for t.decoder.More() {
			item, err := t.next(depth + 1)
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		_, _, err := t.token()
		return &node{at, items}, err
	case json.Number:
		return &node{at, jsonNumber(tok)}, nil
	default:
		return &node{at, tok}, nil // a string, a bool or nil
	}
}

func (t *jsonTree) object(at place, depth int) (*node, error) {
	o := &table{}
	for t.decoder.More() {
		tok, key, err := t.token()
		if err != nil {
			return nil, err
		}
		name, _ := tok.(string)
		if o.find(name) != nil {
			return nil, fmt.Errorf("%q is there twice", shorten(name))
		}
		value, err := t.next(depth + 1)
		if err != nil {
			return nil, err
		}
		o.add(name, key, value)
	}
	_, _, err := t.token()
	return &node{at, o}, err
}

// token reads one token and tells where it starts.
func (t *jsonTree) token() (json.Token, place, error) {
	from := int(t.decoder.InputOffset())
	for from < len(t.source.data) && strings.IndexByte(" \t\r\n,:", t.source.data[from]) >= 0 {
		from++
	}
	tok, err := t.decoder.Token()
	return tok, t.source.place(from), err
}

func jsonNumber(n json.Number) any {
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return i
	}
	if f, err := n.Float64(); err == nil {
		return f
	}
	return fmt.Errorf("%s, a number beyond what can be counted", shorten(n.String()))
}
