//go:build race

package envoyrls_test

// The race detector makes pools forget.
const raceEnabled = true
