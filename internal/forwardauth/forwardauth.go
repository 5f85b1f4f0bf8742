// Package forwardauth answers proxies that ask about every request before they pass it on: nginx's auth_request,
// Caddy's forward_auth and Traefik's forwardAuth. The proxy tells the original request in header fields; the answer is
// 200 or a refusal that it hands to the client.
package forwardauth

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/httplimit"
	"github.com/sluicehq/sluice/internal/engine"
)

// Identity knows who is calling.
type Identity interface {
	// Subject tells who sent a request, by the socket's address and the header.
	Subject(ctx context.Context, peer netip.Addr, h http.Header) sluice.Subject
	// Attributes tells the attributes that are taken from the header, in a map that is the caller's; nil: none.
	Attributes(h http.Header) map[string]string
	// Trusted tells whether an address is a proxy whose word about the client is taken.
	Trusted(peer netip.Addr) bool
}

// Options tune the door. The zero value works.
type Options struct {
	// Denied is the status that refuses, from 400 to 499, where the proxy asks for none. Default: the rule's own.
	Denied int
	// Headers chooses the header fields that tell clients their limits. Default httplimit.IETF | httplimit.XRateLimit.
	Headers httplimit.Dialects
	// Log is told of callers that are not trusted. Default: nobody.
	Log *slog.Logger
	// Now is the clock that X-RateLimit-Reset counts from. It decides nothing. Default time.Now.
	Now func() time.Time
}

// New returns the handler. It takes every method, since proxies differ in the one they ask by.
//
// The query of its own URL chooses: namespace=NAME the rules, cost=N the units a request takes, denied=STATUS the status
// that refuses. That status is then the only one for refusals; the one that is meant for the client is in Sluice-Status, and
// its body, which nginx does not hand over, in Sluice-Problem.
//
// Only trusted proxies are answered. Anyone else could have requests counted for whomever he names; and a proxy that was
// forgotten in the configuration is found at its first request, instead of counting all its clients as one.
func New(checker sluice.Checker, identity Identity, opts Options) http.Handler {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &door{checker: checker, identity: identity, opts: opts}
}

type door struct {
	checker  sluice.Checker
	identity Identity
	opts     Options
	warned   atomic.Int64 // when an untrusted caller was last logged, in Unix seconds
}

// ServeHTTP decides about the request that the proxy tells of.
func (h *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	asked, err := readQuery(r.URL.RawQuery, h.opts.Denied)
	if sameQuery(r.Header, r.URL.RawQuery) {
		err = errSameQuery
	}
	if err != nil {
		refusal{http.StatusBadRequest, err.Error()}.answer(w, asked.denied)
		return
	}
	peer := socketAddr(r.RemoteAddr)
	if !h.identity.Trusted(peer) {
		h.warn(r.Context(), peer)
		refusal{http.StatusForbidden, "The proxy that asks is not among identity.trusted_proxies."}.answer(w, asked.denied)
		return
	}
	o, err := readOriginal(r.Header)
	if err != nil {
		refusal{http.StatusBadRequest, err.Error()}.answer(w, asked.denied)
		return
	}
	d, err := h.checker.Check(r.Context(), sluice.Request{
		Namespace: asked.namespace, Subject: h.identity.Subject(r.Context(), peer, r.Header), Route: o.route, Method: o.method,
		Attributes: h.identity.Attributes(r.Header), Cost: asked.cost,
	})
	if err != nil {
		answerError(w, err, asked.denied)
		return
	}
	httplimit.WriteHeaders(w.Header(), &d, h.opts.Headers, h.opts.Now())
	if !d.Allowed {
		refuse(w, d, asked.denied)
		return
	}
	if d.Delay > 0 && !hold(r.Context(), d.Delay) {
		answerError(w, context.Canceled, asked.denied)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// warnEvery is how often an untrusted caller is logged: each of its requests would fill the log.
const warnEvery = time.Minute

func (h *door) warn(ctx context.Context, peer netip.Addr) {
	now, last := h.opts.Now().Unix(), h.warned.Load()
	if now-last < int64(warnEvery/time.Second) || !h.warned.CompareAndSwap(last, now) {
		return
	}
	h.opts.Log.LogAttrs(ctx, slog.LevelWarn, "forward-auth was asked by a proxy that is not trusted, and refused: add its address to identity.trusted_proxies",
		slog.String("peer", peer.String()))
}

// hold waits as long as a throttling rule asks for. It tells whether somebody still waits for the answer.
func hold(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// answerError answers where nothing was decided. What is wrong with the request refuses it; what is wrong with this node
// keeps its status, so that the proxy does what it does when nobody answers.
func answerError(w http.ResponseWriter, err error, denied int) {
	status := httplimit.ErrorStatus(err)
	switch {
	case errors.Is(err, engine.ErrOverloaded):
		w.Header().Set("Retry-After", "1")
		refusal{http.StatusServiceUnavailable, "Too many requests are under way."}.answer(w, 0)
	case status == http.StatusBadRequest:
		refusal{status, "The request cannot be judged."}.answer(w, denied)
	default:
		refusal{status, ""}.answer(w, 0)
	}
}

// socketAddr is the peer's address; it is invalid where there is none, as on a Unix socket.
func socketAddr(remote string) netip.Addr {
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	return peer.Addr().Unmap().WithZone("")
}
