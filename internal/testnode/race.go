//go:build race

package testnode

// raceDetector tells that this program was built with it.
const raceDetector = true
