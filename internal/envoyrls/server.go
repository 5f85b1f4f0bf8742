// Package envoyrls is the door for Envoy: the rate limit service of Envoy's API, version 3, over gRPC and as JSON over
// HTTP. Each descriptor of a call is one request in the namespace that the call's domain names, and all of them are
// decided in one step.
package envoyrls

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/httplimit"
)

// Engine decides. It is what this package needs of an *engine.Engine.
type Engine interface {
	CheckAll(ctx context.Context, reqs []sluice.Request, decisions []sluice.Decision) error
	Peek(ctx context.Context, req sluice.Request) (sluice.Decision, error)
	Credit(ctx context.Context, req sluice.Request) error
}

// Server answers Envoy. It is safe for concurrent use.
type Server struct {
	pb.UnimplementedRateLimitServiceServer

	engine Engine
	rules  func() *sluice.RuleSet
	opts   Options
	calls  sync.Pool

	reading sync.Mutex // held by the one call that reads a new rule set
	domains atomic.Pointer[domains]
}

// Options tune a Server. The zero value works.
type Options struct {
	// Headers are the fields that Envoy adds to its response, about the tightest of a call's limits. Envoy can also write
	// some of its own: enable_x_ratelimit_headers. Default: none.
	Headers httplimit.Dialects
	// Log hears of rules whose descriptor pattern cannot be read. Default: nobody.
	Log *slog.Logger
}

// New returns a server. rules tells the rule set in force, which is the one that the engine decides by.
func New(engine Engine, rules func() *sluice.RuleSet, opts Options) *Server {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{engine: engine, rules: rules, opts: opts}
	s.calls.New = func() any { return new(call) }
	s.domains.Store(readDomains(rules(), opts.Log))
	return s
}

// Register adds the service to a gRPC server.
func (s *Server) Register(to grpc.ServiceRegistrar) { pb.RegisterRateLimitServiceServer(to, s) }

// ShouldRateLimit answers a call.
func (s *Server) ShouldRateLimit(ctx context.Context, req *pb.RateLimitRequest) (*pb.RateLimitResponse, error) {
	if err := check(req); err != nil {
		return nil, statusOf(err)
	}
	c := s.calls.Get().(*call)
	defer func() {
		c.reset()
		s.calls.Put(c)
	}()
	known := s.current()
	d := known.byName[req.GetDomain()]
	c.grow(len(req.GetDescriptors()))
	for i, from := range req.GetDescriptors() {
		c.add(i, d, known.of, req, from)
	}
	c.markBeside(d)
	if err := s.decide(ctx, c); err != nil {
		return nil, statusOf(err)
	}
	return s.answer(c, d, known.of, req), nil
}

// current returns what the rule set in force asks for. A new rule set is read once, by the first call that sees it; others
// go on with the one before until it is read, which takes milliseconds for thousands of rules.
func (s *Server) current() *domains {
	known := s.domains.Load()
	rules := s.rules()
	if known.of == rules || !s.reading.TryLock() {
		return known
	}
	defer s.reading.Unlock()
	if known = s.domains.Load(); known.of != rules {
		known = readDomains(rules, s.opts.Log)
		s.domains.Store(known)
	}
	return known
}

// decide fills the call's decisions.
func (s *Server) decide(ctx context.Context, c *call) error {
	if c.mixed {
		return s.decideMixed(ctx, c)
	}
	return s.engine.CheckAll(ctx, c.reqs, c.decisions)
}

// decideMixed gives back first, charges then, in one step, and looks last, so that what it tells is how things stand
// after the call.
func (s *Server) decideMixed(ctx context.Context, c *call) error {
	var reqs []sluice.Request
	var at []int
	for i, t := range c.tasks {
		switch t {
		case refund:
			if err := s.engine.Credit(ctx, c.reqs[i]); err != nil {
				return err
			}
		case charge:
			reqs, at = append(reqs, c.reqs[i]), append(at, i)
		case peek, refuse:
		}
	}
	if len(reqs) > 0 {
		decisions := make([]sluice.Decision, len(reqs))
		if err := s.engine.CheckAll(ctx, reqs, decisions); err != nil {
			return err
		}
		for n, i := range at {
			c.decisions[i] = decisions[n]
		}
	}
	return s.look(ctx, c)
}

// look fills the decisions of descriptors that are not charged, side by side: each has the same deadline, and one after
// the other they would add up.
func (s *Server) look(ctx context.Context, c *call) error {
	errs := make([]error, len(c.tasks))
	var wg sync.WaitGroup
	for i, t := range c.tasks {
		if t == peek || t == refund {
			req := c.reqs[i]
			req.Cost = 0
			wg.Go(func() { c.decisions[i], errs[i] = s.engine.Peek(ctx, req) })
		}
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
