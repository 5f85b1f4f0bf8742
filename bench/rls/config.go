package main

import (
	"embed"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"

	"go.yaml.in/yaml/v3"
)

// tree is a configuration of the reference service, as far as calls are made up from it.
type tree struct {
	Domain      string  `yaml:"domain"`
	Descriptors []level `yaml:"descriptors"`
}

type level struct {
	Key            string  `yaml:"key"`
	Value          string  `yaml:"value,omitempty"`
	RateLimit      *limit  `yaml:"rate_limit,omitempty"`
	ShadowMode     bool    `yaml:"shadow_mode,omitempty"`
	ShareThreshold bool    `yaml:"share_threshold,omitempty"`
	Descriptors    []level `yaml:"descriptors,omitempty"`
}

type limit struct {
	RequestsPerUnit int        `yaml:"requests_per_unit"`
	Unit            string     `yaml:"unit,omitempty"`
	Unlimited       bool       `yaml:"unlimited,omitempty"`
	Name            string     `yaml:"name,omitempty"`
	Replaces        []replaced `yaml:"replaces,omitempty"`
}

type replaced struct {
	Name string `yaml:"name"`
}

// shadowed begins the name of every limit in shadow mode, so that answers tell which those are.
const shadowed = "shadow-"

// config is one configuration of the run.
type config struct {
	tree
	file string
	text []byte
}

//go:embed configs/*.yaml
var written embed.FS

// handwritten returns the configurations that people would write.
func handwritten() ([]config, error) {
	names, err := fs.Glob(written, "configs/*.yaml")
	if err != nil {
		return nil, err
	}
	var all []config
	for _, name := range names {
		text, err := written.ReadFile(name)
		if err != nil {
			return nil, err
		}
		c := config{file: path.Base(name), text: text}
		if err := yaml.Unmarshal(text, &c.tree); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// maker makes configurations up.
type maker struct {
	*rand.Rand
	limits int  // named so far
	shares bool // share_threshold may occur
}

var (
	someKeys     = []string{"user", "path", "generic_key", "remote_address", "plan", "method"}
	someValues   = []string{"a", "ab", "abc", "b", "ba", "10.0.0.1", "/v1/x"}
	someBegins   = []string{"a", "ab", "b", "", "10.", "/v1/"}
	someUnits    = []string{"second", "minute", "hour", "day", "week", "month", "year"}
	someRequests = []int{1, 1, 2, 2, 3, 4, 5, 8, 13, 20}
)

// config makes one up.
func (m *maker) config(n int) (config, error) {
	c := config{tree: tree{Domain: fmt.Sprintf("random-%d", n)}, file: fmt.Sprintf("random-%d.yaml", n)}
	m.limits = 0
	c.Descriptors = m.levels(3)
	var err error
	c.text, err = yaml.Marshal(c.tree)
	return c, err
}

// levels makes up descriptors that stand side by side.
func (m *maker) levels(depth int) []level {
	var all []level
	seen := map[string]bool{}
	keys := m.Perm(len(someKeys))[:1+m.IntN(3)]
	for range 2 + m.IntN(4) {
		l := level{Key: someKeys[keys[m.IntN(len(keys))]]}
		switch m.IntN(4) {
		case 0:
			l.Value = someBegins[m.IntN(len(someBegins))] + "*"
			l.ShareThreshold = m.shares && m.IntN(3) == 0
		case 1, 2:
			l.Value = someValues[m.IntN(len(someValues))]
		}
		if seen[l.Key+"="+l.Value] {
			continue
		}
		seen[l.Key+"="+l.Value] = true
		if m.IntN(5) > 0 {
			m.limit(&l)
		}
		if depth > 1 && m.IntN(2) == 0 {
			l.Descriptors = m.levels(depth - 1)
		}
		all = append(all, l)
	}
	return all
}

// limit makes up a rate limit.
func (m *maker) limit(l *level) {
	m.limits++
	name := fmt.Sprintf("limit-%d", m.limits)
	l.RateLimit = &limit{}
	switch n := m.IntN(12); n {
	case 0:
		l.RateLimit.Unlimited = true
	case 1:
		l.RateLimit.Unit = someUnits[m.IntN(len(someUnits))]
	default:
		l.RateLimit.Unit = someUnits[m.IntN(len(someUnits))]
		l.RateLimit.RequestsPerUnit = someRequests[m.IntN(len(someRequests))]
		if l.ShadowMode = n < 4; l.ShadowMode {
			name = shadowed + name
		}
	}
	if l.ShadowMode || m.IntN(2) == 0 {
		l.RateLimit.Name = name
	}
	for range m.IntN(2) * m.IntN(3) {
		other := fmt.Sprintf("limit-%d", 1+m.IntN(12))
		if m.IntN(3) == 0 {
			other = shadowed + other
		}
		if other != l.RateLimit.Name {
			l.RateLimit.Replaces = append(l.RateLimit.Replaces, replaced{other})
		}
	}
}

// sharing tells whether values of a wildcard count together somewhere.
func sharing(levels []level) bool {
	return slices.ContainsFunc(levels, func(l level) bool { return l.ShareThreshold || sharing(l.Descriptors) })
}
