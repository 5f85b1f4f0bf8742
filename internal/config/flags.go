package config

import (
	"strings"

	"github.com/spf13/pflag"
)

// Flags are the flags that every command with a configuration has: --config and --set. The zero value is ready for AddTo.
type Flags struct {
	// Path is --config.
	Path string
	// Set are the --set flags as they were written: field=value.
	Set []string
}

const (
	pathFlag = "config"
	setFlag  = "set"
)

// AddTo defines the flags.
func (f *Flags) AddTo(fs *pflag.FlagSet) {
	fs.StringVarP(&f.Path, pathFlag, "c", f.Path, "configuration `file` (default: $SLUICE_CONFIG, ./sluice.toml, /etc/sluice/sluice.toml)")
	// An array, not a slice: commas belong to the value, where they separate the elements of a list.
	fs.StringArrayVar(&f.Set, setFlag, f.Set, "set one `field=value` of the configuration, such as redis.url=memory (repeatable)")
}

// FlagsOf returns the values of flags that AddTo defined on this command or one above it.
func FlagsOf(fs *pflag.FlagSet) Flags {
	var f Flags
	f.Path, _ = fs.GetString(pathFlag) // without such a flag the value is empty, as if it were not given
	f.Set, _ = fs.GetStringArray(setFlag)
	return f
}

// Options turns the flags into the options of Load. More overrides can be appended, for flags with names of their own.
func (f Flags) Options() Options {
	opts := Options{Path: f.Path}
	for _, text := range f.Set {
		field, value, found := strings.Cut(text, "=")
		if !found {
			field = "" // Load says so; the text may be a secret, so it is not repeated
		}
		opts.Overrides = append(opts.Overrides, Override{Field: strings.TrimSpace(field), Value: value, Flag: "--" + setFlag})
	}
	return opts
}
