// Package smuggle holds requests that two servers in a row may read in different ways, a sender for them, and an upstream
// that reads what comes through so strictly that nothing hides from it. It is for tests and benchmarks.
package smuggle

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The targets. Each case has its own for what may reach an upstream: its request, and the one that follows every case.
// Hidden is written where it is part of a body, or of a request that is broken.
const (
	target = "/a-000"
	end    = "/end-000"
	Hidden = "/smuggled"
)

// Case is a connection's bytes.
type Case struct {
	Name string
	Raw  string
	// Most is how many requests for Target may reach the upstream.
	Most int
	// Target is what the case asks for, and End what is asked for after it, to see whether the server still knows where it is.
	Target, End string
}

// number gives the cases names of their own.
func number(cases []Case) []Case {
	slices.SortFunc(cases, func(a, b Case) int { return strings.Compare(a.Name, b.Name) })
	for i := range cases {
		c := &cases[i]
		c.Target, c.End = fmt.Sprintf("/a-%03d", i+1), fmt.Sprintf("/end-%03d", i+1)
		c.Raw = strings.ReplaceAll(c.Raw, target, c.Target)
	}
	return cases
}

// patience bounds the wait for answers. Only cases that leave the server waiting for the rest of a body reach it.
const patience = 2 * time.Second

// Send writes a case to a server and returns the status codes of the answers. Servers may close the connection at any time.
func (c Case) Send(ctx context.Context, addr string) ([]int, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("send %s: %w", c.Name, err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, fmt.Errorf("send %s: %w", c.Name, err)
	}
	// Its error is not one of the test: the server may have closed the connection before all was sent.
	_, _ = io.WriteString(conn, c.Raw)
	_, _ = io.WriteString(conn, "GET "+c.End+" HTTP/1.1\r\nHost: gw\r\nConnection: close\r\n\r\n")
	return answers(conn), nil
}

// answers reads until the connection ends or goes silent.
func answers(conn net.Conn) (codes []int) {
	r := bufio.NewReader(conn)
	for {
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			return codes
		}
		codes = append(codes, res.StatusCode)
		_, err = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if err != nil || res.Close {
			return codes
		}
	}
}

// Judge says what is wrong with the targets that reached the upstream, if anything.
func Judge(cases []Case, targets []string) []error {
	count := map[string]int{}
	for _, t := range targets {
		count[t]++
	}
	var faults []error
	for _, c := range cases {
		if n := count[c.Target]; n > c.Most {
			faults = append(faults, fmt.Errorf("%s: %d requests reached the upstream, want at most %d", c.Name, n, c.Most))
		}
		if n := count[c.End]; n > 1 {
			faults = append(faults, fmt.Errorf("%s: the last request reached the upstream %d times", c.Name, n))
		}
		delete(count, c.Target)
		delete(count, c.End)
	}
	for t, n := range count {
		faults = append(faults, fmt.Errorf("%d requests for %s reached the upstream, which nobody sent", n, t))
	}
	return faults
}
