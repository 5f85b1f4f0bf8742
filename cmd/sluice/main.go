// Command sluice limits the rates of APIs: it serves decisions to proxies and programs, and tells operators what it
// decides and why.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// The exit codes. Scripts branch on them.
const (
	exitError   = 1
	exitUsage   = 2
	exitRefused = 3 // sluice check: the request would not pass
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // whoever asks twice does not want to wait: the second signal ends the process
	err := newRoot().ExecuteContext(ctx)
	stop()
	os.Exit(exitCode(err))
}

// exitCode tells what happened on standard error and returns the code for it.
func exitCode(err error) int {
	var refused refusedError
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &refused):
		return exitRefused
	case errors.As(err, &usage):
		fmt.Fprintln(os.Stderr, "sluice:", err)
		return exitUsage
	default:
		fmt.Fprintln(os.Stderr, "sluice:", err)
		return exitError
	}
}

// refusedError ends a command that asked and was refused. The answer was printed already.
type refusedError struct{}

func (refusedError) Error() string { return "refused" }
