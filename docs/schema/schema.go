// Package schema holds the JSON Schemas of the files that people write, for editors that complete and check while
// typing. They are made from the Go structs; a test of internal/config fails when they are out of date.
package schema

import _ "embed" // the schemas are part of the program, so that any version can print its own

// Config is the JSON Schema of the configuration file, sluice.toml.
//
//go:embed sluice.schema.json
var Config []byte

// Rules is the JSON Schema of rules files, in TOML, YAML and JSON.
//
//go:embed rules.schema.json
var Rules []byte
