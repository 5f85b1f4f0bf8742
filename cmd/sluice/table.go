package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"go.yaml.in/yaml/v3"
)

// table is a list for people. What stands in it is shown so that it cannot steer the terminal.
type table struct {
	lines []string
}

func newTable(titles ...string) *table {
	return &table{lines: []string{strings.Join(titles, "\t")}}
}

func (t *table) row(cells ...string) {
	for i, cell := range cells {
		if cells[i] = printable(cell); cell == "" {
			cells[i] = "-"
		}
	}
	t.lines = append(t.lines, strings.Join(cells, "\t"))
}

func (t *table) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, line := range t.lines {
		_, _ = fmt.Fprintln(tw, line)
	}
	return tw.Flush()
}

// counted is a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// when shows an instant in the reader's time; the zero one is a dash.
func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// printValue prints a value as JSON or YAML.
func (f *form) printValue(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", f.value, err)
	}
	return f.printJSON(w, text)
}

// printJSON prints what a node answered, as it is or as YAML.
func (f *form) printJSON(w io.Writer, text []byte) error {
	if f.value != "yaml" {
		_, err := fmt.Fprintf(w, "%s\n", bytes.TrimSpace(text))
		return err
	}
	node, err := yamlOf(text)
	if err != nil {
		return fmt.Errorf("the answer is no JSON: %w", err)
	}
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(node); err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	return enc.Close()
}

// yamlOf makes YAML of JSON that keeps the order of fields, and numbers digit by digit.
func yamlOf(text []byte) (*yaml.Node, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	node, err := yamlNode(dec)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows it")
	}
	return node, nil
}

func yamlNode(dec *json.Decoder) (*yaml.Node, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	open, isDelim := token.(json.Delim)
	if !isDelim {
		return yamlScalar(token)
	}
	node := &yaml.Node{Kind: yaml.MappingNode}
	if open == '[' {
		node.Kind = yaml.SequenceNode
	}
	for dec.More() { // the decoder takes turns between names and values by itself
		below, err := yamlNode(dec)
		if err != nil {
			return nil, err
		}
		node.Content = append(node.Content, below)
	}
	if len(node.Content) == 0 {
		node.Style = yaml.FlowStyle // [] and {}
	}
	_, err = dec.Token() // the end
	return node, err
}

func yamlScalar(token json.Token) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.ScalarNode}
	switch v := token.(type) {
	case nil:
		node.Tag, node.Value = "!!null", "null"
	case bool:
		node.Tag, node.Value = "!!bool", fmt.Sprint(v)
	case json.Number:
		node.Tag, node.Value = "!!int", v.String()
		if strings.ContainsAny(node.Value, ".eE") {
			node.Tag = "!!float"
		}
	case string:
		node.SetString(v)
	default:
		return nil, fmt.Errorf("unexpected %v", token)
	}
	return node, nil
}
