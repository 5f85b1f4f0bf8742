// Package httplimit limits net/http handlers:
//
//	limit := httplimit.Middleware(limiter, httplimit.ByIP, httplimit.Options{})
//	http.Handle("/api/", limit(api))
//
// A request that is let through reaches the handler with the header fields of its decision already set, so that they
// appear on every answer, whatever its status; a refused one is answered here. The ResponseWriter is handed on as it
// is, so flushing, hijacking and the like work as without the middleware. Of two middlewares around one handler, the
// fields of the inner one are sent.
package httplimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/sluicehq/sluice"
)

// Options tune a middleware. The zero value works.
type Options struct {
	// Headers chooses the header fields that tell clients their limits. Default IETF | XRateLimit.
	Headers Dialects
	// OnRefuse answers refused requests. The header fields are set when it is called, Retry-After among them; status and
	// body are its own, and Status and Refuse are there to help. It may keep the decision. Default: Refuse.
	OnRefuse func(w http.ResponseWriter, r *http.Request, d *sluice.Decision)
	// OnError answers requests about which nothing was decided, or which ended while they were held. The error wraps
	// ErrKey when the key function returned it, and that of the request's context when it is done.
	// Default: a problem document with ErrorStatus, which does not repeat the error.
	OnError func(w http.ResponseWriter, r *http.Request, err error)
	// Now is the clock that X-RateLimit-Reset counts from. It decides nothing. Default time.Now.
	Now func() time.Time
}

// ErrKey marks errors of key functions.
var ErrKey = errors.New("request has no key to count by")

// Middleware returns what puts a handler behind a limiter. The key function says whom a request is counted for; there
// is no default for it, because a wrong one counts all clients together or lets each choose its own. Middleware panics
// when checker or key is nil.
//
// The handler behind it is called when the request is allowed, after the delay of a throttling rule. Requests are
// held for a minute at most, which an http.Server's WriteTimeout should leave room for.
func Middleware(checker sluice.Checker, key KeyFunc, opts Options) func(http.Handler) http.Handler {
	if checker == nil || key == nil {
		panic("httplimit: Middleware needs a checker and a key function, such as httplimit.ByIP")
	}
	if opts.OnRefuse == nil {
		opts.OnRefuse = func(w http.ResponseWriter, _ *http.Request, d *sluice.Decision) { Refuse(w, d) }
	}
	if opts.OnError == nil {
		opts.OnError = func(w http.ResponseWriter, _ *http.Request, err error) { answerError(w, err) }
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return func(next http.Handler) http.Handler {
		return &handler{checker: checker, key: key, opts: opts, next: next}
	}
}

// handler is one handler behind a limiter.
type handler struct {
	checker sluice.Checker
	key     KeyFunc
	opts    Options
	next    http.Handler
}

// ServeHTTP asks, and then serves, holds or refuses the request.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req, err := h.key(r)
	if err != nil {
		h.opts.OnError(w, r, fmt.Errorf("%w: %w", ErrKey, err))
		return
	}
	d, err := h.checker.Check(r.Context(), req)
	if err != nil {
		h.opts.OnError(w, r, err)
		return
	}
	WriteHeaders(w.Header(), &d, h.opts.Headers, h.opts.Now())
	if !d.Allowed {
		h.refuse(w, r, d)
		return
	}
	if d.Delay > 0 {
		if err := hold(r.Context(), d.Delay); err != nil {
			h.opts.OnError(w, r, err)
			return
		}
	}
	h.next.ServeHTTP(w, r)
}

// refuse has a decision of its own, so that only refused requests pay for one on the heap.
func (h *handler) refuse(w http.ResponseWriter, r *http.Request, d sluice.Decision) {
	h.opts.OnRefuse(w, r, &d)
}

// hold waits unless ctx ends before, or would.
func hold(ctx context.Context, d time.Duration) error {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < d {
		return fmt.Errorf("hold the request for %s: %w", d, context.DeadlineExceeded)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("hold the request for %s: %w", d, ctx.Err())
	}
}
