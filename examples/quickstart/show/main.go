// Command show runs the quickstart program on a real Redis and prints what a client sees: a request let through and one
// refused; then the same with Redis stopped, from the program that still runs and from one that starts without Redis.
// It leaves with status 1 where anything is not as promised. Everything happens on loopback.
package main

import (
	"bytes"
	"context"
	"fmt"
	"go/format"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/testredis"
)

const (
	quickstart = "github.com/sluicehq/sluice/examples/quickstart"
	maxLines   = 15
	// patience bounds the whole show; most of it is for compiling on a cold cache.
	patience = 3 * time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ctx, cancel := context.WithTimeout(ctx, patience)
	p := testredis.Program()
	err := show(ctx, os.Stdout, p)
	p.Close()
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// show is the whole of it. What it starts is gone when the clean-ups of tb have run.
func show(ctx context.Context, out io.Writer, tb testredis.TB) error {
	dir, err := run(ctx, "go", "list", "-f", "{{.Dir}}", quickstart)
	if err != nil {
		return err
	}
	source := filepath.Join(strings.TrimSpace(dir), "main.go")
	lines, err := countLines(source)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "# %s: %d lines\n", source, lines)
	work := tb.TempDir()
	binary := filepath.Join(work, "quickstart")
	if _, err := run(ctx, "go", "build", "-o", binary, source); err != nil { // of this file alone
		return err
	}
	redis := testredis.Single(tb, testredis.Options{})

	first, err := start(ctx, tb, binary, redis.Addr())
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n# Redis runs on %s\n", redis.Addr())
	if err := first.demonstrate(ctx, out, ""); err != nil {
		return fmt.Errorf("with Redis: %w", err)
	}

	redis.Kill()
	fmt.Fprint(out, "\n# Redis is stopped, the same program goes on\n")
	if err := first.demonstrate(ctx, out, "local"); err != nil {
		return fmt.Errorf("after Redis was stopped: %w", err)
	}

	fmt.Fprint(out, "\n# Redis is still stopped, another program starts\n")
	second, err := start(ctx, tb, binary, redis.Addr())
	if err != nil {
		return err
	}
	if err := second.demonstrate(ctx, out, "local"); err != nil {
		return fmt.Errorf("started without Redis: %w", err)
	}
	fmt.Fprint(out, "\n# all as promised\n")
	return nil
}

// countLines counts the lines that are not blank, of a file that must be formatted, and refuses too many.
func countLines(source string) (int, error) {
	text, err := os.ReadFile(source)
	if err != nil {
		return 0, err
	}
	formatted, err := format.Source(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", source, err)
	}
	if !bytes.Equal(text, formatted) {
		return 0, fmt.Errorf("%s is not formatted", source)
	}
	lines := 0
	for line := range bytes.Lines(text) {
		if len(bytes.TrimSpace(line)) > 0 {
			lines++
		}
	}
	if lines > maxLines {
		return 0, fmt.Errorf("%s has %d lines: the promise is %d", source, lines, maxLines)
	}
	return lines, nil
}

// run returns what a program prints, and says what it complained of when it fails.
func run(ctx context.Context, name string, args ...string) (string, error) {
	var complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = &complaint
	printed, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", cmd, err, &complaint)
	}
	return string(printed), nil
}
