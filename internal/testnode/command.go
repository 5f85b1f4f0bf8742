package testnode

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Output is what a command left behind.
type Output struct {
	Stdout, Stderr string
	// Code is the exit code.
	Code int
}

// runTimeout is far longer than any command takes that is not meant to stay.
const runTimeout = time.Minute

// Run runs the command to its end, such as: check user=u_42. The variables are added to its environment.
func Run(tb TB, env []string, args ...string) Output {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), runTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, Binary(tb), args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Dir = tb.TempDir() // no configuration is found by chance
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		tb.Fatalf("sluice %q: %v\n%s", args, errors.Join(err, ctx.Err()), &stderr)
	}
	return Output{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}
