package redisstore_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy stands between a client and a server and can lose a reply that the server has sent: what it was asked is then
// done, and the client does not know.
type proxy struct {
	listener net.Listener
	target   string
	wait     sync.WaitGroup

	lose atomic.Int32 // one of the constants below, for the next reply

	mu    sync.Mutex
	conns []net.Conn
	holes []net.Conn // clients' ends that hear nothing any more
}

// What becomes of the next reply.
const (
	forward   int32 = iota
	cut             // it is lost and the connection closed
	blackhole       // it is lost, and so is everything after it on that connection
)

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, target: target}
	p.wait.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.closeAll()
		p.wait.Wait()
	})
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			p.closeAll() // also what was accepted while the test ended
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		p.wait.Go(func() {
			_, _ = io.Copy(server, client)
			_ = server.Close()
		})
		p.wait.Go(func() {
			p.replies(client, server)
			_ = client.Close()
			_ = server.Close()
		})
	}
}

// replies copies what the server says, as long as nothing is to be lost.
func (p *proxy) replies(client, server net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		switch p.lose.Swap(forward) {
		case cut:
			return
		case blackhole:
			p.mu.Lock()
			p.holes = append(p.holes, client)
			p.mu.Unlock()
			_, _ = io.Copy(io.Discard, server)
			return
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (p *proxy) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
}

// closeHoles cuts the connections that hang.
func (p *proxy) closeHoles() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.holes {
		_ = c.Close()
	}
}
