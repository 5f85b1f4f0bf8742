// Package engine is what every door asks: it completes the subject by what is on record about it, and lets the
// limiter decide. Doors differ only in how a question comes in and how the answer goes out.
package engine

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
)

// ErrOverloaded means that so many requests are under way that this one was turned away: nothing was decided or charged.
var ErrOverloaded = errors.New("too many requests under way")

// Directory knows what is on record about subjects.
type Directory interface {
	// Fill completes a subject: tier, overrides for rules of the namespace, block, exemption. It leaves what is set already. It may
	// wait for what is kept elsewhere, but only for a part of the time that a decision has.
	Fill(namespace string, subject *sluice.Subject)
}

// Expecter is a Directory that can be told beforehand whom it will be asked about, so that several are waited for together.
type Expecter interface {
	// Expect must not block.
	Expect(subject *sluice.Subject)
}

// Observer is told of every decision that charges, on the goroutine that asked: it must not block, nor keep the pointers.
type Observer interface {
	Decided(ctx context.Context, req *sluice.Request, d *sluice.Decision, began time.Time, took time.Duration)
}

// Engine decides for all doors of a node. It is safe for concurrent use.
type Engine struct {
	limiter  *sluice.Limiter
	opts     Options
	inFlight atomic.Int64
	shed     atomic.Int64
	held     atomic.Bool
}

// Options tune an Engine. The zero value works.
type Options struct {
	// Directory completes subjects. Default: nothing is on record about anyone.
	Directory Directory
	// Observer is told of every decision. Default: nobody.
	Observer Observer
	// MaxInFlight is how many questions are worked on at once; further ones are turned away. Default: any number.
	MaxInFlight int
}

// New returns an engine.
func New(limiter *sluice.Limiter, opts Options) *Engine {
	if opts.Directory == nil {
		opts.Directory = empty{}
	}
	if opts.Observer == nil {
		opts.Observer = empty{}
	}
	if opts.MaxInFlight <= 0 {
		opts.MaxInFlight = math.MaxInt
	}
	return &Engine{limiter: limiter, opts: opts}
}

// Check decides about a request and charges it when it is allowed.
func (e *Engine) Check(ctx context.Context, req sluice.Request) (sluice.Decision, error) {
	if !e.enter() {
		return sluice.Decision{}, ErrOverloaded
	}
	defer e.leave()
	began := time.Now()
	e.opts.Directory.Fill(req.Namespace, &req.Subject)
	d, err := e.limiter.Check(ctx, req)
	if err == nil {
		e.opts.Observer.Decided(ctx, &req, &d, began, time.Since(began))
	}
	return d, err
}

// CheckAll decides about several requests, each by itself, in one step; see sluice.Limiter.CheckAll. It completes the
// requests' subjects in place.
func (e *Engine) CheckAll(ctx context.Context, reqs []sluice.Request, decisions []sluice.Decision) error {
	if !e.enter() {
		return ErrOverloaded
	}
	defer e.leave()
	began := time.Now()
	if expecter, ok := e.opts.Directory.(Expecter); ok {
		for i := range reqs {
			expecter.Expect(&reqs[i].Subject)
		}
	}
	for i := range reqs {
		e.opts.Directory.Fill(reqs[i].Namespace, &reqs[i].Subject)
	}
	if err := e.limiter.CheckAll(ctx, reqs, decisions); err != nil {
		return err
	}
	took := time.Since(began)
	for i := range reqs {
		e.opts.Observer.Decided(ctx, &reqs[i], &decisions[i], began, took)
	}
	return nil
}

// Peek decides as Check would, and charges nothing.
func (e *Engine) Peek(ctx context.Context, req sluice.Request) (sluice.Decision, error) {
	if !e.enter() {
		return sluice.Decision{}, ErrOverloaded
	}
	defer e.leave()
	e.opts.Directory.Fill(req.Namespace, &req.Subject)
	return e.limiter.Peek(ctx, req)
}

// Explain tells which rules match a request and why the others do not, and what Check would decide. Nothing is charged.
func (e *Engine) Explain(ctx context.Context, req sluice.Request) (sluice.Explanation, error) {
	if !e.enter() {
		return sluice.Explanation{}, ErrOverloaded
	}
	defer e.leave()
	e.opts.Directory.Fill(req.Namespace, &req.Subject)
	return e.limiter.Explain(ctx, req)
}

// Reset forgets the counters of every rule that matches the request, for its subject.
func (e *Engine) Reset(ctx context.Context, req sluice.Request) error {
	e.opts.Directory.Fill(req.Namespace, &req.Subject)
	return e.limiter.Reset(ctx, req)
}

// Credit gives back the request's cost to the counters of every rule that matches it; see sluice.Limiter.Credit.
func (e *Engine) Credit(ctx context.Context, req sluice.Request) error {
	e.opts.Directory.Fill(req.Namespace, &req.Subject)
	return e.limiter.Credit(ctx, req)
}

// InFlight tells how many questions are being worked on.
func (e *Engine) InFlight() int { return int(e.inFlight.Load()) }

// Hold turns every question away until Release, for a node that has no rules yet: without any it would let everything pass.
func (e *Engine) Hold() { e.held.Store(true) }

// Release ends Hold.
func (e *Engine) Release() { e.held.Store(false) }

// Overloaded tells how many questions were turned away so far.
func (e *Engine) Overloaded() int64 { return e.shed.Load() }

func (e *Engine) enter() bool {
	if n := e.inFlight.Add(1); n > int64(e.opts.MaxInFlight) || e.held.Load() {
		e.inFlight.Add(-1)
		e.shed.Add(1)
		return false
	}
	return true
}

func (e *Engine) leave() { e.inFlight.Add(-1) }

// empty stands in for what was not asked for.
type empty struct{}

func (empty) Fill(string, *sluice.Subject) {}

func (empty) Decided(context.Context, *sluice.Request, *sluice.Decision, time.Time, time.Duration) {}
