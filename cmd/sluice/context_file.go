package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// contexts are the clusters a user knows, as kept in sluice/config.toml in the user's configuration folder.
type contexts struct {
	// Current is the one that commands go by.
	Current string             `toml:"current,omitempty" json:"current,omitempty"`
	Known   map[string]cluster `toml:"context,omitempty" json:"contexts,omitempty"`
}

// cluster is where nodes are asked and what is shown to them. It has the token's file, not the token: the file is often shared.
type cluster struct {
	Admin     string `toml:"admin,omitempty" json:"admin,omitempty"`
	Server    string `toml:"server,omitempty" json:"server,omitempty"`
	TokenFile string `toml:"token_file,omitempty" json:"token_file,omitempty"`
	CAFile    string `toml:"ca_file,omitempty" json:"ca_file,omitempty"`
	CertFile  string `toml:"cert_file,omitempty" json:"cert_file,omitempty"`
	KeyFile   string `toml:"key_file,omitempty" json:"key_file,omitempty"`
	Namespace string `toml:"namespace,omitempty" json:"namespace,omitempty"`
}

// contextsPath is where contexts are kept.
func contextsPath() (string, error) {
	dir := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) { // as its specification wants
		var err error
		if dir, err = os.UserConfigDir(); err != nil {
			return "", fmt.Errorf("contexts have no place: %w: set XDG_CONFIG_HOME", err)
		}
	}
	return filepath.Join(dir, "sluice", "config.toml"), nil
}

// readContexts reads a file of contexts. One that does not exist has none.
func readContexts(path string) (contexts, error) {
	c := contexts{Known: map[string]cluster{}}
	text, err := os.ReadFile(filepath.Clean(path))
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("read contexts: %w", err)
	}
	if err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&c); err != nil {
		var unknown *toml.StrictMissingError
		if errors.As(err, &unknown) {
			return c, fmt.Errorf("%s has fields that are not known:\n%s", path, unknown.String())
		}
		return c, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// write replaces the file in one step, so that a command that reads it meanwhile finds the old or the new one.
func (c contexts) write(path string) error {
	text, err := toml.Marshal(c)
	if err != nil {
		return fmt.Errorf("write contexts: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write contexts: %w", err)
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".config-*.toml")
	if err != nil {
		return fmt.Errorf("write contexts: %w", err)
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return fmt.Errorf("write contexts: %w", err)
	}
	return nil
}

// find returns a context.
func (c contexts) find(name string) (cluster, error) {
	found, known := c.Known[name]
	if !known {
		return found, fmt.Errorf("there is no context %q: %s", name, c.hint())
	}
	return found, nil
}

func (c contexts) hint() string {
	if len(c.Known) == 0 {
		return "make one by sluice context set NAME --admin URL"
	}
	return "there are " + strings.Join(c.names(), ", ")
}

// names lists them in order.
func (c contexts) names() []string {
	var names []string
	for name := range c.Known {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
