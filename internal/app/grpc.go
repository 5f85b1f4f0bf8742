package app

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"github.com/sluicehq/sluice/internal/checkgrpc"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/httpserver"
)

// The bounds of a gRPC connection.
const (
	maxStreams  = 1000
	handshake   = 5 * time.Second
	pingNoOften = 10 * time.Second // clients that ping more often are closed
)

// streamWorkers answer calls without growing a new stack for each, which costs a tenth of a call. More calls than these at once
// get goroutines of their own, as without; fewer workers would help fewer of the calls that wait for Redis.
const streamWorkers = 64

// grpcDoor is the gRPC listener.
func (a *App) grpcDoor(cfg *config.Config, l net.Listener) (*server, error) {
	opts := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(checkgrpc.MaxMessageSize),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.NumStreamWorkers(streamWorkers),
		grpc.ConnectionTimeout(handshake),
		grpc.MaxHeaderListSize(16 << 10),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingNoOften, PermitWithoutStream: true}),
	}
	tlsConfig, err := a.tlsConfig("grpc", cfg.GRPC.TLS, "h2")
	if err != nil {
		return nil, err
	}
	if tlsConfig != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(tlsConfig)))
	}
	s := grpc.NewServer(append(opts, a.tracedCalls()...)...)
	a.checkG.Register(s)
	a.envoy.Register(s)
	endWatches := a.registerHealth(s)
	if cfg.GRPC.Reflection {
		reflection.Register(s)
	}
	return grpcDoor("grpc", httpserver.Limit(l, maxGRPCConns), s, func() {
		a.checkG.Drain()
		endWatches()
	}), nil
}

// adminCalls answers the gRPC calls of operators, on their listener and behind its token.
func (a *App) adminCalls() *grpc.Server {
	s := grpc.NewServer(grpc.MaxRecvMsgSize(checkgrpc.MaxMessageSize))
	checkgrpc.NewAdmin(a.engine).Register(s)
	return s
}

// registerHealth answers grpc.health.v1, for the server as a whole and for each of its services.
func (a *App) registerHealth(s *grpc.Server) (endWatches func()) {
	stopping, end := context.WithCancel(context.Background())
	all := &watchedHealth{Server: health.NewServer(), stopping: stopping.Done()}
	for name := range s.GetServiceInfo() {
		all.SetServingStatus(name, grpc_health_v1.HealthCheckResponse_SERVING)
	}
	grpc_health_v1.RegisterHealthServer(s, all)
	go func() {
		<-a.health.Draining() // closed at the latest when Run ends
		all.Shutdown()
	}()
	return end
}

// watchedHealth ends its watches when the doors close. Clients keep these open for good, so that a graceful stop would
// wait for them until it is cut.
type watchedHealth struct {
	*health.Server
	stopping <-chan struct{}
}

// Watch implements grpc_health_v1.HealthServer.
func (h *watchedHealth) Watch(in *grpc_health_v1.HealthCheckRequest, stream grpc.ServerStreamingServer[grpc_health_v1.HealthCheckResponse]) error {
	ctx, end := context.WithCancel(stream.Context())
	defer end()
	go func() {
		defer end()
		select {
		case <-h.stopping:
		case <-ctx.Done():
		}
	}()
	err := h.Server.Watch(in, watchStream{stream, ctx})
	if stream.Context().Err() == nil {
		return status.Error(codes.Unavailable, "the node is stopping")
	}
	return err
}

// watchStream is a stream that ends earlier than its connection.
type watchStream struct {
	grpc.ServerStreamingServer[grpc_health_v1.HealthCheckResponse]
	ctx context.Context //nolint:containedctx // what Context returns
}

// Context implements grpc.ServerStream.
func (s watchStream) Context() context.Context { return s.ctx }

// tracedCalls takes the callers' traces along, where traces are written.
func (a *App) tracedCalls() []grpc.ServerOption {
	if a.traces == nil {
		return nil
	}
	from := func(ctx context.Context) context.Context {
		md, _ := metadata.FromIncomingContext(ctx)
		return a.traces.FromGRPC(ctx, md)
	}
	return []grpc.ServerOption{
		grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			return next(from(ctx), req)
		}),
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			return next(srv, tracedStream{stream, from(stream.Context())})
		}),
	}
}

// tracedStream is a stream in its caller's trace.
type tracedStream struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // what Context returns
}

// Context implements grpc.ServerStream.
func (s tracedStream) Context() context.Context { return s.ctx }

// maxGRPCConns bounds connections; Envoy has one for each of its workers.
const maxGRPCConns = 4096
