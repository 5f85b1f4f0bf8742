// Package adminhttp is the operators' door, on a listener of its own:
//
//	GET  /livez /readyz /healthz     health; ?verbose lists the checks
//	GET  /metrics                    for Prometheus
//	GET  /v1/status                  what this node runs on, and what is wrong with it
//	GET  /v1/rules                   the rules in force
//	GET  /v1/inspect?user=u_42       the counters of a subject now
//	GET  /v1/tail                    refusals as they happen, a line of JSON each
//	POST /v1/explain                 which rules match a request, and why the others do not
//	POST /v1/refund /v1/reset        gives units back to, or forgets, the counters of a request
//	sluice.v1.AdminService           the same two over gRPC
//	GET  /debug/pprof/               profiles, where they are switched on
//
// All but health and metrics ask for a bearer token.
package adminhttp

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/pprof" // registers with a mux, too, that no listener of ours serves

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/telemetry"
)

// Engine changes counters; see engine.Engine.
type Engine interface {
	Credit(ctx context.Context, req sluice.Request) error
	Reset(ctx context.Context, req sluice.Request) error
}

// Directory knows what is on record about subjects; see engine.Directory.
type Directory interface {
	Fill(namespace string, subject *sluice.Subject)
}

// Options say what the door shows. Health, Rules and Status are required.
type Options struct {
	// Token is asked for at every request, so that it can be replaced. Default: none, and nothing behind it answers.
	Token func() config.Secret
	// Health answers for this node.
	Health *Health
	// Rules returns the rule set in force.
	Rules func() *sluice.RuleSet
	// Status describes this node.
	Status func() Status
	// Metrics answers scrapes. Default: not served.
	Metrics http.Handler
	// Explain answers /v1/explain, as the check API does. Default: not served.
	Explain http.Handler
	// GRPC answers the calls of sluice.v1.AdminService. Default: not served.
	GRPC http.Handler
	// Tail is what /v1/tail reads. Default: not served.
	Tail *telemetry.Tail
	// Store is what /v1/inspect looks into. Default: not served.
	Store sluice.Store
	// KeyOf names a counter in the store, for people who look into it. Default: the store has no names.
	KeyOf func(sluice.Key, sluice.Limit) string
	// Directory completes subjects as the engine does. Default: nothing is on record about anyone.
	Directory Directory
	// Pprof serves profiles. Default false.
	Pprof bool
	// Log is told who changed what. Default: nobody.
	Log *slog.Logger
}

type handler struct {
	engine Engine
	opts   Options
	guard  *guard
}

// New returns the handler of the admin listener.
func New(engine Engine, opts Options) http.Handler {
	if opts.Token == nil {
		opts.Token = func() config.Secret { return "" }
	}
	if opts.Directory == nil {
		opts.Directory = nobody{}
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	h := &handler{engine: engine, opts: opts, guard: newGuard(opts.Token, opts.Log)}
	open := http.NewServeMux()
	open.HandleFunc("GET /livez", h.live)
	open.HandleFunc("GET /readyz", h.ready)
	open.HandleFunc("GET /healthz", h.ready)
	if opts.Metrics != nil {
		open.Handle("GET /metrics", opts.Metrics)
	}
	// Whatever is not open, known or not, is behind the token.
	open.Handle("/", h.guard.protect(h.protected()))
	return secured(open)
}

func (h *handler) protected() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", h.status)
	mux.HandleFunc("GET /v1/rules", h.rules)
	mux.HandleFunc("POST /v1/refund", h.refund)
	mux.HandleFunc("POST /v1/reset", h.reset)
	if h.opts.GRPC != nil {
		mux.Handle("POST /sluice.v1.AdminService/", h.opts.GRPC)
	}
	if h.opts.Store != nil {
		mux.HandleFunc("GET /v1/inspect", h.inspect)
	}
	if h.opts.Tail != nil {
		mux.HandleFunc("GET /v1/tail", h.tail)
	}
	if h.opts.Explain != nil {
		mux.Handle("POST /v1/explain", h.opts.Explain)
	}
	if h.opts.Pprof {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", hidden) // flags are no secret, but nobody needs them here
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	mux.HandleFunc("GET /", notFound)
	return mux
}

// secured keeps answers out of caches and browsers from guessing what they are.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

func hidden(w http.ResponseWriter, _ *http.Request) {
	writeProblem(w, problem{Status: http.StatusNotFound, Detail: "The command line is not shown."})
}

func notFound(w http.ResponseWriter, _ *http.Request) {
	writeProblem(w, problem{Status: http.StatusNotFound, Detail: "Ask at /v1/status, /v1/rules, /v1/inspect, /v1/tail, /v1/explain, /v1/refund or /v1/reset."})
}

func writeJSON(w http.ResponseWriter, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		panic("adminhttp: " + err.Error()) // our own types always marshal
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n')) // fails when the client is gone
}

// nobody is on record.
type nobody struct{}

func (nobody) Fill(string, *sluice.Subject) {}
