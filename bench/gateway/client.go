package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"

	"github.com/sluicehq/sluice/bench/internal/load"
)

// users is how many callers there are.
const users = 100_000

// target is a server to ask, on connections that stay open. The client is as small as can be, because it takes its share of
// the same two cores: a larger one would make every server look alike.
type target struct{ addr string }

type client struct {
	conn   net.Conn
	reader *bufio.Reader
	buf    []byte
}

// op returns an operation for so many callers, each with a connection of its own.
func (t target) op(callers int) load.Op {
	clients := make([]client, callers)
	return func(ctx context.Context, caller int, _ int64) error {
		c := &clients[caller]
		if c.conn == nil {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", t.addr)
			if err != nil {
				return err
			}
			c.conn, c.reader = conn, bufio.NewReader(conn)
		}
		return c.ask()
	}
}

// ask sends a request of a random user and reads the answer.
func (c *client) ask() error {
	c.buf = append(c.buf[:0], "GET /api/items/42 HTTP/1.1\r\nHost: shop.example\r\nAccept: */*\r\nUser-Agent: bench\r\nX-User: user-"...)
	c.buf = strconv.AppendInt(c.buf, int64(rand.IntN(users)), 10)
	c.buf = append(c.buf, "\r\n\r\n"...)
	if _, err := c.conn.Write(c.buf); err != nil {
		return err
	}
	length := -1
	for first := true; ; first = false {
		line, err := c.reader.ReadSlice('\n')
		if err != nil {
			return err
		}
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case first && !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")):
			return fmt.Errorf("answered %q", line)
		case len(line) == 0:
			if length < 0 {
				return errors.New("the answer tells no length")
			}
			_, err := c.reader.Discard(length)
			return err
		case bytes.HasPrefix(line, []byte("Content-Length: ")):
			if length, err = strconv.Atoi(string(line[len("Content-Length: "):])); err != nil {
				return err
			}
		}
	}
}
