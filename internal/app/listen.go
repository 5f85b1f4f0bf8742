package app

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// inheritedFrom is the number of the first file descriptor that a parent hands to a process, by systemd's convention.
const inheritedFrom = 3

// doorNames are what listeners are called.
var doorNames = []string{"http", "grpc", "admin", "gateway"}

// sockets opens listeners. A parent that holds the listening sockets, such as systemd, hands them over by name in LISTEN_FDS
// and LISTEN_FDNAMES ("http", "grpc", "admin", "gateway"): a new process then takes over while the old one drains, and no
// connection finds the door shut.
type sockets struct {
	inherited map[string]*os.File
}

// inheritedSockets reads the environment. Sockets that are not for this process are left alone.
func inheritedSockets(getenv func(string) string, pid int) (*sockets, error) {
	s := &sockets{inherited: map[string]*os.File{}}
	text := getenv("LISTEN_FDS")
	if text == "" {
		return s, nil
	}
	if p := getenv("LISTEN_PID"); p != "" && p != strconv.Itoa(pid) {
		return s, nil
	}
	n, err := strconv.Atoi(text)
	names := strings.Split(getenv("LISTEN_FDNAMES"), ":")
	if err != nil || n < 0 || len(names) != n {
		return nil, fmt.Errorf("LISTEN_FDS is %q and LISTEN_FDNAMES names %d sockets: want as many names as sockets, of http, grpc, admin, gateway", text, len(names))
	}
	for i, name := range names {
		if !slices.Contains(doorNames, name) {
			return nil, fmt.Errorf("LISTEN_FDNAMES: %q is no listener of ours: want http, grpc, admin or gateway", name)
		}
		s.inherited[name] = os.NewFile(uintptr(inheritedFrom+i), name)
	}
	return s, nil
}

// listen returns the inherited listener of a name, or opens one.
func (s *sockets) listen(ctx context.Context, name, address string) (net.Listener, error) {
	if file := s.inherited[name]; file != nil {
		delete(s.inherited, name)
		l, err := net.FileListener(file)
		_ = file.Close() // the listener has a duplicate
		if err != nil {
			return nil, fmt.Errorf("take over the %s listener: %w", name, err)
		}
		return shared{l}, nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w: choose another address by %s.listen, or stop whoever has it", name, err, name)
	}
	return l, nil
}

// shared is a listener whose socket other processes have, too. Any of them can make it block, for all: os/exec does so whenever it hands
// the socket on. An Accept may then sit in the kernel where Close does not reach it, and only a connection gets it out.
type shared struct {
	net.Listener
}

// nudgeEvery is how often Close connects to its own socket. Another process may take the connection, so once may not be enough.
const nudgeEvery = 10 * time.Millisecond

// Close implements net.Listener.
func (l shared) Close() error {
	closed := make(chan error, 1)
	go func() { closed <- l.Listener.Close() }()
	dialer := net.Dialer{Timeout: nudgeEvery}
	tick := time.NewTicker(nudgeEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-closed:
			return err
		case <-tick.C:
			if c, err := dialer.DialContext(context.Background(), "tcp", l.Addr().String()); err == nil {
				_ = c.Close()
			}
		}
	}
}
