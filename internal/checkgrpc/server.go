// Package checkgrpc is the gRPC door: it serves sluice.v1.LimiterService, and for operators sluice.v1.AdminService.
//
// Questions are read from the wire into the limiter's own types and answers are written straight onto it, without the
// generated messages between: they would be most of what a decision costs this door. Tests hold both against each other.
package checkgrpc

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/api/sluicev1"
)

// MaxMessageSize is what a server should set by grpc.MaxRecvMsgSize: a full batch of ordinary questions fits.
const MaxMessageSize = 256 << 10

// Engine decides; see engine.Engine.
type Engine interface {
	Check(ctx context.Context, req sluice.Request) (sluice.Decision, error)
	CheckAll(ctx context.Context, reqs []sluice.Request, decisions []sluice.Decision) error
	Peek(ctx context.Context, req sluice.Request) (sluice.Decision, error)
	Explain(ctx context.Context, req sluice.Request) (sluice.Explanation, error)
}

// Options tune a Server. The zero value works.
type Options struct {
	// StreamWorkers is how many calls of one stream are decided at once, apart from those that are decided together
	// because they arrived together. More of them wait less for one another, fewer share more trips to the store. Default 4.
	StreamWorkers int
}

// Server answers sluice.v1.LimiterService. It is safe for concurrent use.
type Server struct {
	engine   Engine
	opts     Options
	pool     sync.Pool
	draining chan struct{}
	drain    sync.Once
}

// New returns a server. It starts nothing.
func New(engine Engine, opts Options) *Server {
	if opts.StreamWorkers <= 0 {
		opts.StreamWorkers = 4
	}
	s := &Server{engine: engine, opts: opts, draining: make(chan struct{})}
	s.pool.New = func() any { return new(questions) }
	return s
}

// Register makes a gRPC server serve it.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	r.RegisterService(&grpc.ServiceDesc{
		ServiceName: sluicev1.LimiterService_ServiceDesc.ServiceName,
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{
			s.unary("Check", sluicev1.LimiterService_Check_FullMethodName, s.check),
			s.unary("CheckBatch", sluicev1.LimiterService_CheckBatch_FullMethodName, s.checkBatch),
			s.unary("Peek", sluicev1.LimiterService_Peek_FullMethodName, s.peek),
			s.unary("Explain", sluicev1.LimiterService_Explain_FullMethodName, s.explain),
		},
		Streams: []grpc.StreamDesc{{
			StreamName:    "CheckStream",
			Handler:       func(_ any, stream grpc.ServerStream) error { return s.checkStream(stream) },
			ServerStreams: true,
			ClientStreams: true,
		}},
		Metadata: sluicev1.LimiterService_ServiceDesc.Metadata,
	}, s)
}

// Drain ends every stream once its calls under way are answered, and new streams at once, so that clients go elsewhere
// and grpc.Server.GracefulStop need not wait for them. Other calls are still answered.
func (s *Server) Drain() { s.drain.Do(func() { close(s.draining) }) }

// unary describes a method as generated code would, but for the type that requests are read into. That is reused once the
// answer is made: interceptors must not keep it.
func (s *Server) unary(name, full string, answer func(context.Context, *questions) (any, error)) grpc.MethodDesc {
	handle := func(ctx context.Context, in any) (any, error) { return answer(ctx, in.(*questions)) }
	return grpc.MethodDesc{
		MethodName: name,
		Handler: func(srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
			q := s.questions(fieldQuestions)
			defer s.release(q)
			if err := decode(q); err != nil {
				return nil, err
			}
			if intercept == nil {
				return answer(ctx, q)
			}
			return intercept(ctx, q, &grpc.UnaryServerInfo{Server: srv, FullMethod: full}, handle)
		},
	}
}

func (s *Server) questions(field protowire.Number) *questions {
	q := s.pool.Get().(*questions)
	q.field = field
	return q
}

func (s *Server) release(q *questions) {
	if cap(q.reqs) <= maxPooled && cap(q.decisions) <= maxPooled {
		q.Reset()
		s.pool.Put(q)
	}
}

// maxPooled is how many questions kept memory has room for. A decision has more than half a kilobyte: keeping room for the
// largest batches would hold a megabyte for each of them that ever came at once.
const maxPooled = 128

func (s *Server) check(ctx context.Context, q *questions) (any, error) {
	req, err := q.only()
	if err != nil {
		return nil, statusOf(err)
	}
	d, err := s.engine.Check(ctx, *req)
	if err != nil {
		return nil, statusOf(err)
	}
	return decisionReply(&d), nil
}

func (s *Server) peek(ctx context.Context, q *questions) (any, error) {
	req, err := q.only()
	if err != nil {
		return nil, statusOf(err)
	}
	d, err := s.engine.Peek(ctx, *req)
	if err != nil {
		return nil, statusOf(err)
	}
	return decisionReply(&d), nil
}

func (s *Server) checkBatch(ctx context.Context, q *questions) (any, error) {
	if err := q.bounded(); err != nil {
		return nil, statusOf(err)
	}
	if err := s.engine.CheckAll(ctx, q.reqs, q.room()); err != nil {
		return nil, statusOf(err)
	}
	return newReply(q.appendAnswers(nil, fieldBatchAnswers, q.decisions)), nil
}

func (s *Server) explain(ctx context.Context, q *questions) (any, error) {
	req, err := q.only()
	if err != nil {
		return nil, statusOf(err)
	}
	e, err := s.engine.Explain(ctx, *req)
	if err != nil {
		return nil, statusOf(err)
	}
	body := appendDecisionField(nil, &e.Decision)
	body = appendText(body, fieldReason, e.Decision.Reason())
	for i := range e.Rules {
		body = appendExplained(body, &e.Rules[i])
	}
	return newReply(body), nil
}
