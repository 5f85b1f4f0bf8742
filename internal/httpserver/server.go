// Package httpserver is the hardened http.Server of every HTTP listener: bounds on headers, on time, on connections and on
// requests under way, and a way to stop that fails no request.
package httpserver

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Options tune a Server. The zero value works.
type Options struct {
	// TLS encrypts the listener; GetCertificate lets certificates be replaced. Default: plain text.
	TLS *tls.Config
	// MaxConns is how many connections are open at once; further clients wait to be accepted. A proxy needs two
	// descriptors for each. Default 10,000, or a third of the process's descriptors when these are fewer.
	MaxConns int
	// MaxInFlight is how many requests are worked on at once; further ones are answered 503 at once. Default 10,000.
	MaxInFlight int
	// MaxHeaderBytes bounds a request's header. Default 16 KiB.
	MaxHeaderBytes int
	// HTTP2 takes HTTP/2 without TLS, too, as gRPC clients speak it. Default false.
	HTTP2 bool
	// Streams leaves out the bounds on the time that a whole request and its answer take, for a proxy. Default false.
	Streams bool
	// Log is told of broken connections at level debug. Default: nobody.
	Log *slog.Logger
}

// The bounds in time. A client that needs longer for its header is slow on purpose; shorter ones would hit phones.
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 90 * time.Second
	wholeTimeout  = 90 * time.Second // longer than any throttling rule holds a request
	pingAfter     = 30 * time.Second
	pingTimeout   = 15 * time.Second
	writeTimeout  = 30 * time.Second // without a single byte written, HTTP/2 only
)

// The bounds of HTTP/2: streams of one connection, and the memory their unread bodies take.
const (
	maxStreams       = 250
	streamBuffer     = 256 << 10
	connectionBuffer = 1 << 20
)

// plenty of descriptors is what no default comes near.
const plenty = 1 << 30

const (
	defaultMaxConns    = 10_000
	defaultMaxInFlight = 10_000
	defaultHeaderBytes = 16 << 10
)

func (o Options) withDefaults() Options {
	if o.MaxConns <= 0 {
		o.MaxConns = min(defaultMaxConns, descriptors()/3)
	}
	if o.MaxInFlight <= 0 {
		o.MaxInFlight = defaultMaxInFlight
	}
	if o.MaxHeaderBytes <= 0 {
		o.MaxHeaderBytes = defaultHeaderBytes
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Server serves one listener. It is safe for concurrent use.
type Server struct {
	http     *http.Server
	opts     Options
	handler  http.Handler
	inFlight atomic.Int64
	leaving  atomic.Bool
	stop     context.CancelFunc // ends the requests that Shutdown does not wait for
}

// New returns a server. It does not listen yet.
func New(handler http.Handler, opts Options) *Server {
	opts = opts.withDefaults()
	base, stop := context.WithCancel(context.Background())
	s := &Server{opts: opts, handler: handler, stop: stop}
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		TLSConfig:         opts.TLS,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		// net/http allows 4 KiB beyond it.
		MaxHeaderBytes: max(opts.MaxHeaderBytes-4<<10, 1),
		ErrorLog:       slog.NewLogLogger(opts.Log.Handler(), slog.LevelDebug),
		BaseContext:    func(net.Listener) context.Context { return base },
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          maxStreams,
			MaxReceiveBufferPerStream:     streamBuffer,
			MaxReceiveBufferPerConnection: connectionBuffer,
			SendPingTimeout:               pingAfter,
			PingTimeout:                   pingTimeout,
			WriteByteTimeout:              writeTimeout,
		},
	}
	if opts.HTTP2 {
		s.http.Protocols = new(http.Protocols)
		s.http.Protocols.SetHTTP1(true)
		s.http.Protocols.SetHTTP2(true)
		s.http.Protocols.SetUnencryptedHTTP2(true)
	}
	if !opts.Streams {
		s.http.ReadTimeout, s.http.WriteTimeout = wholeTimeout, wholeTimeout
	}
	return s
}

// Serve answers requests until Shutdown, and closes the listener. It returns nil after Shutdown.
func (s *Server) Serve(l net.Listener) error {
	l = Limit(l, s.opts.MaxConns)
	var err error
	if s.opts.TLS != nil {
		err = s.http.ServeTLS(l, "", "")
	} else {
		err = s.http.Serve(l)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Leave asks clients, by their next answer, to connect elsewhere from then on. Call it when the node is no longer ready
// and some time before Shutdown: a connection that ends with an answer loses no request, while one that is closed idle may
// cross with a request under way.
func (s *Server) Leave() { s.leaving.Store(true) }

// Shutdown stops accepting, waits for the requests under way until ctx is done, and then ends what is left, as well as
// connections that were upgraded. It returns ctx's error when it did not wait for all.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Leave()
	defer s.stop()
	err := s.http.Shutdown(ctx)
	if err != nil {
		_ = s.http.Close() // the deadline is what the caller wants to hear of
	}
	return err
}

// InFlight tells how many requests are being worked on.
func (s *Server) InFlight() int { return int(s.inFlight.Load()) }

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	n := s.inFlight.Add(1)
	defer s.inFlight.Add(-1)
	if s.leaving.Load() {
		w.Header().Set("Connection", "close")
	}
	if n > int64(s.opts.MaxInFlight) {
		w.Header().Set("Retry-After", "1")
		Problem(w, http.StatusServiceUnavailable, "Too many requests are under way.")
		return
	}
	s.handler.ServeHTTP(w, r)
}
