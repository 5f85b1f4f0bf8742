package ruledoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxDepth bounds how deep values nest; rules nest five deep.
const maxDepth = 64

// parseYAML makes a tree of a YAML file.
func parseYAML(s *source) (root *node, fault *Fault) {
	refuse := func(at place, err error) *Fault {
		f := s.fault(at, err)
		return &f
	}
	// The parser is large and written by others: what it stumbles over must not stop a node that is serving.
	defer func() {
		if r := recover(); r != nil {
			root, fault = nil, refuse(place{}, fmt.Errorf("not YAML that can be read (%v): write it more simply", r))
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(s.data))
	var doc, second yaml.Node
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF): // empty
		return &node{at: place{1, 1}, value: &table{}}, nil
	case err != nil:
		at, err := yamlError(err)
		return nil, refuse(at, err)
	}
	if err := decoder.Decode(&second); err == nil {
		return nil, refuse(place{second.Line, second.Column}, errors.New("a second document begins here: keep each in a file of its own"))
	} else if !errors.Is(err, io.EOF) {
		at, err := yamlError(err)
		return nil, refuse(at, err)
	}
	t := yamlTree{seen: map[*yaml.Node]*node{}}
	root = t.node(doc.Content[0])
	if t.fault != nil {
		return nil, refuse(t.at, t.fault)
	}
	if root.value == nil {
		root.value = &table{}
	}
	return root, nil
}

var yamlLine = regexp.MustCompile(`^line (\d+): `)

// yamlError takes the place out of a message, which is the only place it stands in.
func yamlError(err error) (place, error) {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	at := place{}
	if found := yamlLine.FindStringSubmatch(message); found != nil {
		at.line, _ = strconv.Atoi(found[1])
		at.column = 1
		message = message[len(found[0]):]
	}
	return at, fmt.Errorf("not YAML: %s", message)
}

// yamlTree turns the parser's tree into ours. It keeps the first fault that makes the file unreadable.
type yamlTree struct {
	seen  map[*yaml.Node]*node // what anchors stand for; nil while it is being made
	depth int
	fault error
	at    place
}

func (t *yamlTree) fail(at place, format string, args ...any) *node {
	if t.fault == nil {
		t.fault, t.at = fmt.Errorf(format, args...), at
	}
	return &node{at: at}
}

func (t *yamlTree) node(n *yaml.Node) *node {
	at := place{n.Line, n.Column}
	t.depth++
	defer func() { t.depth-- }()
	switch {
	case t.fault != nil:
		return &node{at: at}
	case t.depth > maxDepth:
		return t.fail(at, "nested more than %d deep", maxDepth)
	case n.Kind == yaml.AliasNode:
		// Shared, not copied, so that aliases of aliases do not grow.
		if value := t.seen[n.Alias]; value != nil {
			return value
		}
		return t.fail(at, "*%s stands for something that holds it", shorten(n.Value))
	case n.Style&yaml.TaggedStyle != 0:
		return t.fail(at, "tags such as %s have no meaning here", shorten(n.Tag))
	}
	made := &node{at: at}
	switch n.Kind {
	case yaml.MappingNode:
		made.value = t.mapping(n)
	case yaml.SequenceNode:
		items := make(list, len(n.Content))
		for i, item := range n.Content {
			items[i] = t.node(item)
		}
		made.value = items
	default:
		made.value = yamlScalar(n)
	}
	if n.Anchor != "" {
		t.seen[n] = made
	}
	return made
}

func (t *yamlTree) mapping(n *yaml.Node) *table {
	m := &table{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		at := place{key.Line, key.Column}
		switch {
		case key.Kind != yaml.ScalarNode:
			t.fail(at, "a name is text")
		case key.Tag == "!!merge" && n.Content[i+1].Kind != yaml.ScalarNode: // a text cannot be merged, so there it is a name
			t.fail(at, "\"<<\" is not understood: write the fields out, or use an alias for a whole value")
		case m.find(key.Value) != nil:
			t.fail(at, "%q is there twice", shorten(key.Value))
		}
		if t.fault != nil {
			return m
		}
		m.add(key.Value, at, t.node(n.Content[i+1]))
	}
	return m
}

func yamlScalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!str", "!!timestamp", "!!merge":
		return n.Value
	case "!!bool":
		var value bool
		if err := n.Decode(&value); err == nil && n.Value != "" && strings.ContainsRune("tTfF", rune(n.Value[0])) {
			return value
		}
		return fmt.Errorf("%s: write true or false, or put it in quotes", shorten(n.Value))
	case "!!int":
		return wholeNumber(n.Value)
	case "!!float":
		if value, err := strconv.ParseFloat(n.Value, 64); err == nil {
			return value
		}
		return fmt.Errorf("%s, which is no number that can be counted to", shorten(n.Value))
	case "!!null":
		return nil
	}
	return fmt.Errorf("%s, which is not understood", shorten(n.Value))
}
