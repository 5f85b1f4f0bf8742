package httpserver

import (
	"net"
	"sync"
)

// Limit bounds how many connections of a listener are open at once. Beyond that it accepts no more, so that further
// clients wait in the kernel's queue and cost no descriptor.
func Limit(l net.Listener, conns int) net.Listener {
	return &limited{Listener: l, slots: make(chan struct{}, conns), closed: make(chan struct{})}
}

type limited struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{} // closed by Close, so that a waiting Accept returns
	once   sync.Once
}

// Accept waits for a free place, then for a connection.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &conn{Conn: c, slots: l.slots}, nil
}

// Close stops accepting. Open connections stay.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// conn gives its place back when it is closed.
type conn struct {
	net.Conn
	slots chan struct{}
	once  sync.Once
}

// Close closes the connection.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { <-c.slots })
	return err
}

// CloseWrite ends the sending direction, which net/http does before it closes a connection whose request it did not read
// whole: without it the client would see a reset instead of its answer.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
