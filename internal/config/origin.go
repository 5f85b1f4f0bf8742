package config

import (
	"path/filepath"
	"strconv"
)

// Kind is a place that values come from. Later kinds win over earlier ones.
type Kind uint8

// The kinds.
const (
	// FromDefault is the value that Default has.
	FromDefault Kind = iota
	// FromFile is the configuration file.
	FromFile
	// FromEnvironment is a SLUICE_ variable.
	FromEnvironment
	// FromFlag is the command line.
	FromFlag
)

// Origin tells where a value was written. The zero value is the default.
type Origin struct {
	Kind Kind
	// Name is the file's path, the variable or the flag.
	Name string
	// Line and Column count from 1; they are 0 outside of files.
	Line, Column int
}

// String is "sluice.toml:12:3", "SLUICE_REDIS__URL", "--set" or "default", for messages that begin with it.
func (o Origin) String() string {
	switch {
	case o.Kind == FromDefault:
		return "default"
	case o.Line == 0:
		return o.Name
	default:
		return o.Name + ":" + strconv.Itoa(o.Line) + ":" + strconv.Itoa(o.Column)
	}
}

// comment is the origin as it stands behind a printed value: short, because it stands there on every line.
func (o Origin) comment() string {
	switch {
	case o.Kind == FromDefault:
		return "default"
	case o.Line == 0:
		return "from " + o.Name
	default:
		return "from " + filepath.Base(o.Name) + ":" + strconv.Itoa(o.Line)
	}
}
