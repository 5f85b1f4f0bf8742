package sluice

import "context"

// Observer is told of every decision, on the goroutine that asked for it: it must not block. Metrics, logs and traces
// are built on it; the library itself neither logs nor counts.
type Observer interface {
	Decided(ctx context.Context, req Request, d Decision)
}
