// Package telemetry tells operators what a node does: logs, metrics, traces, and refusals as they happen. It hangs on the
// engine as its Observer; nothing in it blocks a decision.
package telemetry
