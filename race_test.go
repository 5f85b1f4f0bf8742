//go:build race

package sluice_test

// The race detector allocates.
const raceEnabled = true
