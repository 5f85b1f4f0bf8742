package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/testredis"
)

// program is a running quickstart program.
type program struct {
	url    string
	client *http.Client
}

const (
	// startLimit is how long a program may take until it accepts connections.
	startLimit = 10 * time.Second
	// answerLimit is how long any answer may take. A limiter answers within 10 ms; the rest is for busy machines.
	answerLimit = time.Second
	// maxRequests is how many are sent until one passes and one is refused. The limit is five; the first answers may
	// be local, while the connection to Redis is being made, and do not count.
	maxRequests = 20
	// connectPause is how long to let the program connect. Shorter would spend the fallback's units, which are shown later.
	connectPause = 200 * time.Millisecond
)

// start runs the program on a free port until the clean-ups of tb, and returns when it accepts connections.
func start(ctx context.Context, tb testredis.TB, binary, redis string) (*program, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}

	var complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, binary)
	cmd.Env, cmd.Stderr = []string{"REDIS_URL=redis://" + redis, "PORT=" + port}, &complaint
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() { // ends with the process, which the clean-up ends and waits for
		_ = cmd.Wait()
		close(ended)
	}()
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})

	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr); err == nil {
			conn.Close()
			return &program{url: "http://" + addr + "/", client: &http.Client{Timeout: answerLimit}}, nil
		}
		select {
		case <-tick.C:
		case <-ended:
			return nil, fmt.Errorf("program ended: %s", &complaint)
		case <-ctx.Done():
			return nil, fmt.Errorf("program does not listen on %s: %w", addr, ctx.Err())
		}
	}
}

// demonstrate sends requests until one was let through and one refused in this mode, prints both, and checks every
// answer on the way.
func (p *program) demonstrate(ctx context.Context, out io.Writer, mode string) error {
	passed, refused := false, false
	for range maxRequests {
		a, err := p.get(ctx)
		if err != nil {
			return err
		}
		if err := a.check(); err != nil {
			return err
		}
		got := a.header.Get("Sluice-Mode")
		switch {
		case got != mode && mode != "":
			return fmt.Errorf("an answer has Sluice-Mode %q, want %q", got, mode)
		case got != mode: // the connection to Redis is not there yet
			if err := pause(ctx, connectPause); err != nil {
				return err
			}
		case !passed && a.status == http.StatusOK:
			passed = true
			a.print(out, p.url)
		case !refused && a.status == http.StatusTooManyRequests:
			refused = true
			a.print(out, p.url)
		}
		if passed && refused {
			return nil
		}
	}
	return fmt.Errorf("of %d requests in mode %q one was let through: %t, one refused: %t; want both", maxRequests, mode, passed, refused)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// answer is a response, read.
type answer struct {
	proto  string
	status int
	header http.Header
	body   string
}

func (p *program) get(ctx context.Context) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return answer{}, err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{proto: resp.Proto, status: resp.StatusCode, header: resp.Header, body: string(body)}, err
}

// check holds an answer against what every answer promises.
func (a *answer) check() error {
	for _, name := range []string{"RateLimit-Policy", "RateLimit", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Cost"} {
		if a.header.Get(name) == "" {
			return fmt.Errorf("a %d has no %s", a.status, name)
		}
	}
	switch a.status {
	case http.StatusOK:
		return nil
	case http.StatusTooManyRequests:
		if a.header.Get("Retry-After") == "" {
			return errors.New("a 429 has no Retry-After")
		}
		if !json.Valid([]byte(a.body)) || a.header.Get("Content-Type") != "application/problem+json" {
			return fmt.Errorf("the body of a 429 is no problem document: %s", a.body)
		}
		return nil
	default:
		return fmt.Errorf("status %d, want 200 or 429", a.status)
	}
}

// print shows the answer as curl -i would, the body only where it is ours.
func (a *answer) print(out io.Writer, url string) {
	fmt.Fprintf(out, "\n$ curl -i %s\n%s %d %s\n", url, a.proto, a.status, http.StatusText(a.status))
	for _, name := range slices.Sorted(maps.Keys(a.header)) {
		fmt.Fprintf(out, "%s: %s\n", name, strings.Join(a.header[name], ", "))
	}
	if a.status != http.StatusOK {
		fmt.Fprintf(out, "\n%s\n", a.body)
	}
}
