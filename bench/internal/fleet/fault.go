package fleet

import (
	"net"
	"sync"
)

// Wire is a TCP connection point in front of a server, that can be cut or go silent.
type Wire struct {
	listener net.Listener
	to       string

	mu     sync.Mutex
	cut    bool
	silent chan struct{} // open while silent; nil: it is not
	conns  map[net.Conn]bool
}

// NewWire opens one. It is closed with the program.
func NewWire(to string) (*Wire, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &Wire{listener: l, to: to, conns: map[net.Conn]bool{}}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go w.serve(c)
		}
	}()
	return w, nil
}

// Addr is host:port.
func (w *Wire) Addr() string { return w.listener.Addr().String() }

// Cut closes all connections, and new ones at once, until Heal.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	for c := range w.conns {
		_ = c.Close()
	}
}

// Silence lets nothing pass until Heal, and tells nobody.
func (w *Wire) Silence() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent = make(chan struct{})
}

// Heal ends what Cut and Silence began.
func (w *Wire) Heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = false
	if w.silent != nil {
		close(w.silent)
		w.silent = nil
	}
}

func (w *Wire) serve(c net.Conn) {
	w.mu.Lock()
	cut := w.cut
	w.mu.Unlock()
	if cut {
		_ = c.Close()
		return
	}
	server, err := net.Dial("tcp", w.to)
	if err != nil {
		_ = c.Close()
		return
	}
	w.mu.Lock()
	w.conns[c], w.conns[server] = true, true
	w.mu.Unlock()
	var wait sync.WaitGroup
	wait.Go(func() { w.copy(c, server) })
	wait.Go(func() { w.copy(server, c) })
	wait.Wait()
	w.mu.Lock()
	delete(w.conns, c)
	delete(w.conns, server)
	w.mu.Unlock()
}

// copy passes on what comes, and closes both ends when one is.
func (w *Wire) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		w.mu.Lock()
		silent := w.silent
		w.mu.Unlock()
		if silent != nil {
			<-silent
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
