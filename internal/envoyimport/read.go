package envoyimport

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// root, descriptor, rateLimit and replaces are a file of the reference service, with the fields that it knows.
type root struct {
	Domain      text         `yaml:"domain"`
	Descriptors []descriptor `yaml:"descriptors"`
}

type descriptor struct {
	Key            text         `yaml:"key"`
	Value          text         `yaml:"value"`
	RateLimit      *rateLimit   `yaml:"rate_limit"`
	Descriptors    []descriptor `yaml:"descriptors"`
	ShadowMode     flag         `yaml:"shadow_mode"`
	QuotaMode      flag         `yaml:"quota_mode"`
	DetailedMetric flag         `yaml:"detailed_metric"`
	ValueToMetric  flag         `yaml:"value_to_metric"`
	ShareThreshold flag         `yaml:"share_threshold"`
	Metadata       any          `yaml:"metadata"`
}

type rateLimit struct {
	RequestsPerUnit uint32     `yaml:"requests_per_unit"`
	Unit            text       `yaml:"unit"`
	Unlimited       flag       `yaml:"unlimited"`
	Name            text       `yaml:"name"`
	Replaces        []replaces `yaml:"replaces"`
}

type replaces struct {
	Name text `yaml:"name"`
}

// maxFile bounds a file, and so what anchors can make of it.
const maxFile = 4 << 20

// read reads a file. What it does not know is a fault, as it is for the reference service: a misspelt field would be a limit
// that silently is not there.
func read(f File) (root, error) {
	var r root
	if len(f.Data) > maxFile {
		return r, fmt.Errorf("%s has %d bytes: the most is %d", f.Name, len(f.Data), maxFile)
	}
	dec := yaml.NewDecoder(bytes.NewReader(f.Data))
	dec.KnownFields(true)
	if err := dec.Decode(&r); err != nil && !errors.Is(err, io.EOF) {
		return r, fmt.Errorf("%s: %s", f.Name, strings.ReplaceAll(err.Error(), " in type envoyimport.", " in a ")) // people do not know our types
	}
	if r.Domain == "" {
		return r, fmt.Errorf("%s: domain is missing", f.Name)
	}
	return r, nil
}

// text is a scalar as it is written: a value of 0777 or 1.50 is compared with what Envoy sends letter by letter, so it
// must not become a number on the way.
type text string

// UnmarshalYAML reads a scalar of any kind; null is the empty text.
func (t *text) UnmarshalYAML(n *yaml.Node) error {
	switch {
	case n.Kind == yaml.AliasNode:
		return fmt.Errorf("line %d: an alias stands for a text: write the text out", n.Line)
	case n.Kind != yaml.ScalarNode:
		return fmt.Errorf("line %d: a text is wanted here", n.Line)
	case n.Tag == "!!null":
		*t = ""
	default:
		*t = text(n.Value)
	}
	return nil
}

// flag is a boolean of YAML 1.1, which the reference service reads: yes and on are true.
type flag bool

// UnmarshalYAML reads a boolean.
func (f *flag) UnmarshalYAML(n *yaml.Node) error {
	var t text
	if err := t.UnmarshalYAML(n); err != nil {
		return err
	}
	switch strings.ToLower(string(t)) {
	case "true", "yes", "on", "y":
		*f = true
	case "false", "no", "off", "n", "":
		*f = false
	default:
		return fmt.Errorf("line %d: %q is neither true nor false", n.Line, t)
	}
	return nil
}
