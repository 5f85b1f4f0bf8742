// Package grpclimit limits gRPC servers, and asks a sluice service from afar.
//
//	limit := grpclimit.UnaryServerInterceptor(limiter, grpclimit.ByPeer, grpclimit.Options{})
//	server := grpc.NewServer(grpc.UnaryInterceptor(limit))
//
// The interceptors work with any sluice.Checker: a *sluice.Limiter in the process, or a Client of this package, which
// asks a sluice service and decides by itself how to go on when there is none.
package grpclimit

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/sluicehq/sluice"
)

// Options tune interceptors. The zero value works.
type Options struct {
	// Domain is the ErrorInfo domain of refusals, usually the name of the service. Default "sluice".
	Domain string
	// OnRefuse makes the error of a refused call. Metadata is set when it is called. Default: Refusal.
	OnRefuse func(ctx context.Context, d *sluice.Decision) error
}

// UnaryServerInterceptor returns what puts a server's unary methods behind a limiter. The key function says whom a call is
// counted for; there is no default for it, because a wrong one counts all clients together or lets each choose its
// own. It panics when checker or key is nil.
//
// An allowed call reaches the handler after the delay of a throttling rule, and its response carries the header metadata
// "ratelimit" and "ratelimit-policy" (draft-ietf-httpapi-ratelimit-headers-10). A refused one ends with the error of
// Refusal and the same metadata in its trailer, with "retry-after" in seconds and "grpc-retry-pushback-ms", which gRPC's own
// retry policies obey. When the counter store did not answer, "sluice-mode" tells how the decision was made instead.
func UnaryServerInterceptor(checker sluice.Checker, key KeyFunc, opts Options) grpc.UnaryServerInterceptor {
	l := newLimit("UnaryServerInterceptor", checker, key, opts)
	return func(ctx context.Context, in any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		err := l.admit(ctx, info.FullMethod, answerTo{
			header:  func(md metadata.MD) error { return grpc.SetHeader(ctx, md) },
			trailer: func(md metadata.MD) { _ = grpc.SetTrailer(ctx, md) }, // fails outside of a server only
		})
		if err != nil {
			return nil, err
		}
		return handler(ctx, in)
	}
}

// StreamServerInterceptor is UnaryServerInterceptor for streaming methods. A stream is one request, counted when it
// opens, whatever it carries.
func StreamServerInterceptor(checker sluice.Checker, key KeyFunc, opts Options) grpc.StreamServerInterceptor {
	l := newLimit("StreamServerInterceptor", checker, key, opts)
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		err := l.admit(stream.Context(), info.FullMethod, answerTo{header: stream.SetHeader, trailer: stream.SetTrailer})
		if err != nil {
			return err
		}
		return handler(srv, stream)
	}
}

// limit is one interceptor.
type limit struct {
	checker sluice.Checker
	key     KeyFunc
	opts    Options
}

// answerTo is where metadata of a call goes.
type answerTo struct {
	header  func(metadata.MD) error
	trailer func(metadata.MD)
}

func newLimit(name string, checker sluice.Checker, key KeyFunc, opts Options) *limit {
	if checker == nil || key == nil {
		panic("grpclimit: " + name + " needs a checker and a key function, such as grpclimit.ByPeer")
	}
	if opts.Domain == "" {
		opts.Domain = "sluice"
	}
	if opts.OnRefuse == nil {
		opts.OnRefuse = func(_ context.Context, d *sluice.Decision) error { return Refusal(d, opts.Domain) }
	}
	return &limit{checker: checker, key: key, opts: opts}
}

// admit returns nil when the call may go ahead.
func (l *limit) admit(ctx context.Context, method string, to answerTo) error {
	req, err := l.key(ctx, method)
	if err != nil {
		return statusOf(fmt.Errorf("%w: %w", ErrKey, err))
	}
	d, err := l.checker.Check(ctx, req)
	if err != nil {
		return statusOf(err)
	}
	if !d.Allowed {
		to.trailer(metadataOf(&d, time.Now()))
		return l.opts.OnRefuse(ctx, &d)
	}
	if md := metadataOf(&d, time.Now()); len(md) > 0 {
		if err := to.header(md); err != nil {
			return err
		}
	}
	if d.Delay > 0 {
		return hold(ctx, d.Delay)
	}
	return nil
}

// hold waits unless ctx ends before, or would.
func hold(ctx context.Context, d time.Duration) error {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < d {
		return statusOf(context.DeadlineExceeded)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return statusOf(ctx.Err())
	}
}
