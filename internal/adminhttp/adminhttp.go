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
// and, where there is a database, what operators keep in it: /v1/namespaces, rules in them, tiers, subjects, overrides, keys, blocks,
// exemptions, tokens, nodes and the history of all that.
//
// All but health and metrics ask for a bearer token or a session. What each route needs is said in adminauth.Table.
package adminhttp

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/adminauth"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/postgres"
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
	// Auth finds out who asks. Default: only Token's holder is known.
	Auth *adminauth.Authenticator
	// Table says what each route needs. Default adminauth.Table().
	Table map[string]adminauth.Need
	// Database is the registry. Default: its routes answer that there is none.
	Database *postgres.DB
	// IssueKey makes a secret for an API key: for a new one where the id is empty, and otherwise another for that id. Required to make keys.
	IssueKey func(id string) (issued Issued, err error)
	// IssueToken makes a secret for a new token. Required to make tokens.
	IssueToken func() (issued Issued, err error)
	// Recent are requests that were decided lately, for trials of rules. Default: none are known.
	Recent func() []sluice.Request
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

// Issued is a secret that was made: its text, which is shown once, and what is kept of it.
type Issued struct {
	Text, ID string
	Hash     []byte
}

type handler struct {
	engine  Engine
	opts    Options
	guard   *guard
	replays *replays
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
	if opts.Auth == nil {
		opts.Auth = adminauth.New(adminauth.Options{Bootstrap: opts.Token})
	}
	if opts.Table == nil {
		opts.Table = adminauth.Table()
	}
	h := &handler{engine: engine, opts: opts, guard: newGuard(opts.Auth, opts.Log), replays: newReplays()}
	open := http.NewServeMux()
	for pattern, handler := range h.openRoutes() {
		open.Handle(pattern, handler)
	}
	// Whatever is not open, known or not, is behind the token.
	open.Handle("/", h.guard.protect(h.protected()))
	return secured(open)
}

func (h *handler) protected() http.Handler {
	mux := http.NewServeMux()
	for pattern, handler := range h.routes() {
		mux.Handle(pattern, h.authorized(h.opts.Table[pattern], handler))
	}
	mux.HandleFunc("GET /", notFound)
	// Sessions come with every request of a browser, so requests that other sites made it send are refused.
	return http.NewCrossOriginProtection().Handler(mux)
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

func writeJSON(w http.ResponseWriter, value any) { writeJSONStatus(w, http.StatusOK, value) }

func writeJSONStatus(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		panic("adminhttp: " + err.Error()) // our own types always marshal
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // fails when the client is gone
}

// nobody is on record.
type nobody struct{}

func (nobody) Fill(string, *sluice.Subject) {}
