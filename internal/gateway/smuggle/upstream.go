package smuggle

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Upstream is a server that takes nothing but what every server reads in the same way, and remembers it.
type Upstream struct {
	listener net.Listener
	done     sync.WaitGroup

	mu      sync.Mutex
	conns   map[net.Conn]bool
	targets []string
	faults  []string
}

// Listen starts an upstream on a free loopback port. Close stops it.
func Listen() (*Upstream, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it returns at once
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	u := &Upstream{listener: l, conns: map[net.Conn]bool{}}
	u.done.Go(u.accept)
	return u, nil
}

// Addr is host:port.
func (u *Upstream) Addr() string { return u.listener.Addr().String() }

// Take returns the targets of the requests that came since the last call, and what was wrong with them.
func (u *Upstream) Take() (targets, faults []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	targets, faults = u.targets, u.faults
	u.targets, u.faults = nil, nil
	return targets, faults
}

// Close ends the server and its connections.
func (u *Upstream) Close() {
	_ = u.listener.Close()
	u.mu.Lock()
	for c := range u.conns {
		_ = c.Close()
	}
	u.mu.Unlock()
	u.done.Wait()
}

func (u *Upstream) accept() {
	for {
		c, err := u.listener.Accept()
		if err != nil {
			return
		}
		u.mu.Lock()
		u.conns[c] = true
		u.mu.Unlock()
		u.done.Go(func() {
			u.serve(c)
			u.mu.Lock()
			delete(u.conns, c)
			u.mu.Unlock()
			_ = c.Close()
		})
	}
}

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func (u *Upstream) serve(c net.Conn) {
	r := bufio.NewReader(c)
	for {
		err := u.read(c, r)
		if err != nil {
			if !isCut(err) {
				u.mu.Lock()
				u.faults = append(u.faults, err.Error())
				u.mu.Unlock()
			}
			return
		}
		if _, err := io.WriteString(c, okAnswer); err != nil {
			return
		}
	}
}

// isCut tells that the connection ended, which is how a gateway gives up a request.
func isCut(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || strings.Contains(err.Error(), "reset by peer")
}

var (
	requestLine = regexp.MustCompile(`^[A-Za-z]+ (/[!-~]*) HTTP/1\.1$`)
	fieldLine   = regexp.MustCompile("^([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?([\t !-~\u0080-\u00ff]*)$")
	chunkSize   = regexp.MustCompile(`^[0-9a-f]{1,8}$`)
)

// read reads one request, and notes its target as soon as its head is whole.
func (u *Upstream) read(c net.Conn, r *bufio.Reader) error {
	line, err := readLine(r)
	if err != nil {
		return err
	}
	match := requestLine.FindStringSubmatch(line)
	if match == nil {
		return fmt.Errorf("request line %q", line)
	}
	fields, err := readFields(r)
	if err != nil {
		return err
	}
	target, _, _ := strings.Cut(match[1], "?")
	u.mu.Lock()
	u.targets = append(u.targets, target)
	u.mu.Unlock()
	if len(fields["host"]) != 1 {
		return fmt.Errorf("hosts %q", fields["host"])
	}
	if len(fields["expect"]) > 0 {
		if _, err := io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return err
		}
	}
	return readBody(r, fields["content-length"], fields["transfer-encoding"])
}

func readFields(r *bufio.Reader) (map[string][]string, error) {
	fields := map[string][]string{}
	for {
		line, err := readLine(r)
		if err != nil || line == "" {
			return fields, err
		}
		match := fieldLine.FindStringSubmatch(line)
		if match == nil {
			return nil, fmt.Errorf("field line %q", line)
		}
		name := strings.ToLower(match[1])
		fields[name] = append(fields[name], match[2])
	}
}

func readBody(r *bufio.Reader, lengths, encodings []string) error {
	switch {
	case len(lengths) > 0 && len(encodings) > 0, len(lengths) > 1, len(encodings) > 1:
		return fmt.Errorf("lengths %q with encodings %q", lengths, encodings)
	case len(encodings) == 1 && encodings[0] != "chunked":
		return fmt.Errorf("encoding %q", encodings[0])
	case len(encodings) == 1:
		return readChunks(r)
	case len(lengths) == 1:
		n, err := strconv.ParseUint(lengths[0], 10, 32)
		if err != nil {
			return fmt.Errorf("length %q", lengths[0])
		}
		_, err = io.CopyN(io.Discard, r, int64(n))
		return err
	}
	return nil
}

func readChunks(r *bufio.Reader) error {
	for {
		line, err := readLine(r)
		if err != nil {
			return err
		}
		if !chunkSize.MatchString(line) {
			return fmt.Errorf("chunk size %q", line)
		}
		n, _ := strconv.ParseUint(line, 16, 32)
		if n == 0 {
			_, err := readFields(r) // the trailer and the empty line
			return err
		}
		if _, err := io.CopyN(io.Discard, r, int64(n)); err != nil {
			return err
		}
		if line, err := readLine(r); err != nil || line != "" {
			return errors.Join(err, fmt.Errorf("%q after a chunk", line))
		}
	}
}

// readLine reads a line that ends as lines must.
func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	text, found := strings.CutSuffix(line, "\r\n")
	if !found || strings.ContainsAny(text, "\r\x00") {
		return "", fmt.Errorf("line %q", line)
	}
	return text, nil
}
