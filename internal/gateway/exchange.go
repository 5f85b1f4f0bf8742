package gateway

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/httplimit"
	"github.com/sluicehq/sluice/internal/cleanpath"
	"github.com/sluicehq/sluice/internal/httpserver"
)

// exchange is one request that was let through, and the writer of its answer.
//
// The fields of the decision are set at the last moment, in WriteHeader or Hijack: set before, an informational answer of
// the upstream would take them along and leave the final one without.
type exchange struct {
	http.ResponseWriter
	gateway  *Gateway
	route    *route
	path     cleanpath.Path
	peer     netip.Addr
	decision sluice.Decision
	decided  time.Time
	chunked  bool
	broken   atomic.Bool // the client's body could not be read
}

// pass sends the request to the upstream and its answer to the client.
func (x *exchange) pass(r *http.Request) {
	proxy := httputil.ReverseProxy{
		Rewrite:        x.rewrite,
		Transport:      x.route.upstream.transport,
		BufferPool:     &x.gateway.buffers,
		ModifyResponse: x.modify,
		ErrorHandler:   x.fail,
		ErrorLog:       x.gateway.errorLog,
	}
	proxy.ServeHTTP(x, r)
}

// rewrite makes the upstream's request. Hop-by-hop fields and the client's word about forwarding are gone already.
func (x *exchange) rewrite(pr *httputil.ProxyRequest) {
	u, out := x.route.upstream, pr.Out
	escaped, decoded := x.path.Escaped, x.path.Decoded
	if x.route.strip {
		escaped, decoded = x.route.below(escaped), x.route.below(decoded)
	}
	out.URL.Scheme, out.URL.Host = u.scheme, u.host
	out.URL.Path, out.URL.RawPath = u.base.Decoded+decoded, u.base.Escaped+escaped
	out.Host = cmp.Or(u.hostField, pr.In.Host)
	// Only to WebSocket: inside of h2c a client could send any number of requests past the limits.
	if upgrade, asked := out.Header["Upgrade"]; asked && !strings.EqualFold(upgrade[0], "websocket") {
		delete(out.Header, "Upgrade")
		delete(out.Header, "Connection")
	}
	delete(out.Header, "Http2-Settings")
	tellForwarding(pr, x.gateway.identity, x.peer)
	if out.Body != nil {
		out.Body = &watchedBody{ReadCloser: out.Body, broken: &x.broken}
	}
}

// modify drops what the upstream says about limits where the gateway speaks of them itself: a client cannot tell two
// voices apart.
func (x *exchange) modify(res *http.Response) error {
	delete(res.Header, fieldMode)
	if x.speaks() {
		for _, name := range limitFields {
			delete(res.Header, name)
		}
	}
	return nil
}

// speaks tells whether the answer will have fields about limits.
func (x *exchange) speaks() bool {
	return x.gateway.opts.Headers != httplimit.None && x.decision.Tightest() != nil
}

// WriteHeader sends the header, final ones with the fields of the decision.
func (x *exchange) WriteHeader(status int) {
	if status >= http.StatusOK {
		x.tell()
		closeAfterChunks(x.Header(), x.chunked)
	}
	x.ResponseWriter.WriteHeader(status)
}

// Hijack hands over the connection of an upgraded request, with the fields of the decision in the header to send.
func (x *exchange) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	x.tell()
	return http.NewResponseController(x.ResponseWriter).Hijack()
}

// Unwrap lets http.ResponseController flush.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

func (x *exchange) tell() {
	httplimit.WriteHeaders(x.Header(), &x.decision, x.gateway.opts.Headers, x.decided)
}

// fail answers for an upstream that did not.
func (x *exchange) fail(_ http.ResponseWriter, r *http.Request, err error) {
	status, detail := http.StatusBadGateway, "The upstream did not answer."
	var timeout net.Error
	switch {
	case r.Context().Err() != nil:
		status, detail = httplimit.ErrorStatus(context.Canceled), ""
	case x.broken.Load():
		status, detail = http.StatusBadRequest, "The request's body cannot be read."
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		status, detail = http.StatusGatewayTimeout, "The upstream did not answer in time."
	}
	if status >= http.StatusInternalServerError {
		x.gateway.opts.Log.LogAttrs(r.Context(), slog.LevelWarn, "upstream did not answer",
			slog.String("upstream", x.route.upstream.name), slog.Int("status", status), slog.Any("error", err))
	}
	httpserver.Problem(x, status, detail)
}

// watchedBody remembers that the client's body was broken, which is not the upstream's fault. It is read by a goroutine of
// the transport.
type watchedBody struct {
	io.ReadCloser
	broken *atomic.Bool
}

// Read reads the body.
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.broken.Store(true)
	}
	return n, err
}

// buffers lends the memory through which bodies are copied.
type buffers struct{ pool sync.Pool }

// bufferSize is as httputil's own: smaller ones cost more calls, larger ones more memory for slow clients.
const bufferSize = 32 << 10

// Get lends a buffer.
func (b *buffers) Get() []byte {
	if lent, ok := b.pool.Get().(*[]byte); ok {
		return *lent
	}
	return make([]byte, bufferSize)
}

// Put takes a buffer back.
func (b *buffers) Put(buf []byte) { b.pool.Put(&buf) }
