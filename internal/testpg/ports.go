package testpg

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Servers listen on 30000-32767: above the ports that Redis servers of tests take, below those that Linux gives to outgoing connections.
const (
	firstPort = 30000
	portCount = 2768
)

// freePort returns a port that nobody listened on a moment ago.
func freePort() (int, error) {
	var last error
	for range 100 {
		port := firstPort + rand.IntN(portCount)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return port, l.Close()
		}
		last = err
	}
	return 0, fmt.Errorf("no free port in 100 tries: %w", last)
}
