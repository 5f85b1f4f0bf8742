package testredis

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// ReplyError is an error that Redis itself answered with, such as "WRONGTYPE Operation ...".
type ReplyError string

// Error returns the server's words.
func (e ReplyError) Error() string { return string(e) }

// crlf ends every line of the protocol.
const crlf = "\r\n"

// doTimeout bounds one call, dialling included. Larger than any command of ours takes on a busy
// machine; a paused server costs a caller this long.
const doTimeout = 5 * time.Second

// call dials, sends one command, reads one reply and hangs up. A connection each time costs 0.1 ms
// and needs no care for servers that are killed and come back.
func call(addr string, timeout time.Duration, args ...string) (any, error) {
	conn, err := net.DialTimeout("tcp", addr, timeout)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	// Reset instead of close: thousands of calls must not leave thousands of ports in TIME_WAIT.
	_ = conn.(*net.TCPConn).SetLinger(0)
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, encode(args)); err != nil {
		return nil, err
	}
	reply, err := decode(bufio.NewReader(conn))
	if err != nil {
		return nil, err
	}
	if e, ok := reply.(ReplyError); ok {
		return nil, e
	}
	return reply, nil
}

// encode writes a command as an array of bulk strings.
func encode(args []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

// decode reads one RESP2 reply: int64, string, []any, nil, or a ReplyError as a value.
func decode(r *bufio.Reader) (any, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSuffix(line, crlf)
	if line == "" {
		return nil, errors.New("empty reply line")
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return ReplyError(rest), nil
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("reply %q: %w", line, err)
	}
	switch {
	case kind == ':':
		return n, nil
	case n < 0 && (kind == '$' || kind == '*'):
		return nil, nil
	case kind == '$':
		// Read as it comes, and not into n bytes made ahead, so that a broken length costs nothing.
		body, err := io.ReadAll(io.LimitReader(r, n+int64(len(crlf))))
		text, ok := strings.CutSuffix(string(body), crlf)
		if err == nil && (!ok || int64(len(text)) != n) {
			err = io.ErrUnexpectedEOF
		}
		return text, err
	case kind == '*':
		items := []any{}
		for range n {
			item, err := decode(r)
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		return items, nil
	}
	return nil, fmt.Errorf("reply of unknown kind %q", line)
}

// infoField returns one field of a text of "name:value" lines, as INFO and CLUSTER INFO answer,
// or "" when it is not there.
func infoField(info any, name string) string {
	text, _ := info.(string)
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
