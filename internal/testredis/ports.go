package testredis

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Servers listen on 10000-19999 and cluster buses, which Redis puts 10000 above, on 20000-29999.
// Both lie below the range from which Linux takes ports for outgoing connections (32768 and up).
// In that range a client that keeps dialling a killed server can be given the server's own port
// as its source, connect to itself, and hold the port so that the server cannot come back.
const (
	firstPort = 10000
	portCount = 10000
	busOffset = 10000
)

// freePort returns a port that nobody listened on a moment ago; with bus, the cluster bus port
// above it is free as well. Random rather than "the next", so that test binaries running side by
// side seldom meet; that they can is why start tries again.
func freePort(bus bool) (int, error) {
	var last error
	for range 100 {
		port := firstPort + rand.IntN(portCount)
		last = probe(port)
		if last == nil && bus {
			last = probe(port + busOffset)
		}
		if last == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port in 100 tries: %w", last)
}

// probe reports whether the port can be bound.
func probe(port int) error {
	l, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return err
	}
	return l.Close()
}

// loopback returns the address of a port on this machine.
func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// errPortTaken: somebody bound the port between our probe and the server's start.
var errPortTaken = errors.New("port taken")
