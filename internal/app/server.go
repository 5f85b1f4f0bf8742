package app

import (
	"context"
	"errors"
	"net"
	"time"

	"google.golang.org/grpc"

	"github.com/sluicehq/sluice/internal/httpserver"
)

// server is a listener and what answers on it.
type server struct {
	name     string
	listener net.Listener
	serve    func(net.Listener) error
	// leave asks clients to come back elsewhere, some time before stop.
	leave func()
	// stop refuses new work and waits for what is under way until ctx ends; then it cuts.
	stop func(ctx context.Context)
}

func httpDoor(name string, l net.Listener, s *httpserver.Server) *server {
	return &server{name: name, listener: l, serve: s.Serve, leave: s.Leave, stop: func(ctx context.Context) { _ = s.Shutdown(ctx) }}
}

// grpcDoor stops gracefully: clients are told first, then drain ends the streams that would else stay for ever.
func grpcDoor(name string, l net.Listener, s *grpc.Server, drain func()) *server {
	return &server{
		name: name, listener: l,
		serve: func(l net.Listener) error {
			if err := s.Serve(l); !errors.Is(err, grpc.ErrServerStopped) { // stopped before it had begun
				return err
			}
			return nil
		},
		leave: func() {}, // GracefulStop tells clients before it closes anything
		stop: func(ctx context.Context) {
			done := make(chan struct{})
			go func() {
				defer close(done)
				s.GracefulStop()
			}()
			drain()
			select {
			case <-done:
			case <-ctx.Done():
				s.Stop()
				<-done
			}
		},
	}
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
