// Package gateway is the reverse proxy that enforces limits by itself: routes and upstreams come from the configuration
// alone, the limits are asked before the upstream is, and every answer tells the client what is left.
package gateway

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/httplimit"
	"github.com/sluicehq/sluice/internal/cleanpath"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/engine"
	"github.com/sluicehq/sluice/internal/httpserver"
)

// Identity knows who is calling.
type Identity interface {
	// Subject tells who sent a request, by the socket's address and the header.
	Subject(ctx context.Context, peer netip.Addr, h http.Header) sluice.Subject
	// Attributes tells the attributes that are taken from the header, in a map that is the caller's; nil: none.
	Attributes(h http.Header) map[string]string
	// Trusted tells whether an address is a proxy whose word about the client is taken.
	Trusted(peer netip.Addr) bool
	// Strip deletes what an upstream might believe about the caller and nobody vouches for, under all its spellings.
	Strip(peer netip.Addr, h http.Header)
}

// Options tune a Gateway. The zero value works.
type Options struct {
	// Headers chooses the header fields that tell clients their limits. Default httplimit.IETF | httplimit.XRateLimit.
	Headers httplimit.Dialects
	// Log is told of upstreams that fail. Default: nobody.
	Log *slog.Logger
}

// Gateway is the handler. It is safe for concurrent use.
type Gateway struct {
	checker   sluice.Checker
	identity  Identity
	opts      Options
	table     table
	upstreams map[string]*upstream
	buffers   buffers
	errorLog  *log.Logger
}

// New returns a gateway. The error joins every fault of the configuration.
func New(cfg config.Gateway, checker sluice.Checker, identity Identity, opts Options) (*Gateway, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	g := &Gateway{checker: checker, identity: identity, opts: opts, errorLog: slog.NewLogLogger(opts.Log.Handler(), slog.LevelDebug)}
	var faults []error
	g.upstreams, faults = newUpstreams(cfg.Upstreams)
	var routeFaults []error
	g.table, routeFaults = newTable(cfg.Routes, g.upstreams)
	if err := errors.Join(append(faults, routeFaults...)...); err != nil {
		return nil, err
	}
	return g, nil
}

// Close closes the connections to upstreams that are not in use. Requests under way go on.
func (g *Gateway) Close() {
	for _, u := range g.upstreams {
		u.transport.CloseIdleConnections()
	}
}

// ServeHTTP asks the limits, and then refuses the request or passes it on.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	chunked := len(r.TransferEncoding) > 0
	closeAfterChunks(w.Header(), chunked)
	path, rt, ok := g.find(w, r)
	if !ok {
		return
	}
	peer := socketAddr(r.RemoteAddr)
	d, err := g.checker.Check(r.Context(), g.question(r, rt, path.Route, peer))
	if err != nil {
		answerError(w, err)
		return
	}
	decided := time.Now()
	if !d.Allowed {
		refuse(w, d, g.opts.Headers, decided)
		return
	}
	if d.Delay > 0 && !hold(r.Context(), d.Delay) {
		answerError(w, context.Canceled)
		return
	}
	x := &exchange{
		ResponseWriter: w, gateway: g, route: rt, path: path, peer: peer, decision: d, decided: decided, chunked: chunked,
	}
	x.pass(r)
}

// find tells where a request goes, or answers it when it goes nowhere.
func (g *Gateway) find(w http.ResponseWriter, r *http.Request) (cleanpath.Path, *route, bool) {
	if r.Method == http.MethodConnect || r.Method == http.MethodTrace {
		httpserver.Problem(w, http.StatusMethodNotAllowed, "The gateway does not take "+r.Method+".")
		return cleanpath.Path{}, nil, false
	}
	if r.Method != strings.ToUpper(r.Method) {
		// To HTTP "get" is another method than "GET", and so to the rules; to some upstreams it is the same.
		httpserver.Problem(w, http.StatusBadRequest, "The method is not written in capitals.")
		return cleanpath.Path{}, nil, false
	}
	path, err := cleanpath.Clean(r.URL.EscapedPath())
	if err != nil {
		httpserver.Problem(w, http.StatusBadRequest, "The request cannot be judged: "+err.Error()+".")
		return path, nil, false
	}
	rt, allow := g.table.find(hostOf(r.Host), path.Route, r.Method)
	switch {
	case rt == nil && allow != "":
		w.Header().Set("Allow", allow)
		httpserver.Problem(w, http.StatusMethodNotAllowed, "")
		return path, nil, false
	case rt == nil:
		httpserver.Problem(w, http.StatusNotFound, "No route of the gateway leads there.")
		return path, nil, false
	case r.URL.Host != "" && rt.host == "":
		// A whole URL in the request line is how one talks to an open proxy. It is taken for hosts that a route
		// names, as HTTP asks of servers, and for no others.
		httpserver.Problem(w, http.StatusMisdirectedRequest, "The gateway does not serve that host.")
		return path, nil, false
	}
	return path, rt, true
}

// question is what the limits are asked. The route's attributes are the operator's word and replace the client's.
func (g *Gateway) question(r *http.Request, rt *route, path string, peer netip.Addr) sluice.Request {
	attributes := g.identity.Attributes(r.Header)
	if len(attributes) == 0 {
		attributes = rt.attributes
	} else {
		for name, value := range rt.attributes {
			attributes[name] = value
		}
	}
	return sluice.Request{
		Namespace:  rt.namespace,
		Subject:    g.identity.Subject(r.Context(), peer, r.Header),
		Route:      path,
		Method:     r.Method,
		Attributes: attributes,
		Cost:       rt.cost,
	}
}

// refuse has a decision of its own, so that only refused requests pay for one on the heap.
func refuse(w http.ResponseWriter, d sluice.Decision, dialects httplimit.Dialects, now time.Time) {
	httplimit.WriteHeaders(w.Header(), &d, dialects, now)
	httplimit.Refuse(w, &d)
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

// answerError answers requests about which nothing was decided.
func answerError(w http.ResponseWriter, err error) {
	if errors.Is(err, engine.ErrOverloaded) {
		w.Header().Set("Retry-After", "1")
		httpserver.Problem(w, http.StatusServiceUnavailable, "Too many requests are under way.")
		return
	}
	httpserver.Problem(w, httplimit.ErrorStatus(err), "")
}

// socketAddr is the peer's address; it is invalid where there is none, as on a Unix socket.
func socketAddr(remote string) netip.Addr {
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	return peer.Addr().Unmap().WithZone("")
}

// hostOf is a host without port and final dot, in lower case.
func hostOf(host string) string {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.IndexByte(host[i:], ']') < 0 {
		host = host[:i]
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
