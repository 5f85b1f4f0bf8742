package adminhttp

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/pprof" // registers with a mux, too, that no listener of ours serves
	"slices"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/adminauth"
	"github.com/sluicehq/sluice/internal/checkhttp"
	"github.com/sluicehq/sluice/internal/registry"
)

// Routes lists the patterns of everything that is served, as far as the options say.
func Routes(opts Options) []string {
	h := &handler{opts: opts}
	return append(slices.Collect(maps.Keys(h.openRoutes())), slices.Collect(maps.Keys(h.routes()))...)
}

// openRoutes are served to everyone.
func (h *handler) openRoutes() map[string]http.Handler {
	routes := map[string]http.Handler{
		"GET /livez":   http.HandlerFunc(h.live),
		"GET /readyz":  http.HandlerFunc(h.ready),
		"GET /healthz": http.HandlerFunc(h.ready),
	}
	if h.opts.Metrics != nil {
		routes["GET /metrics"] = h.opts.Metrics
	}
	if h.opts.Auth != nil && h.opts.Auth.SignIn() != nil {
		for pattern, handler := range h.opts.Auth.SignIn().Routes() {
			routes[pattern] = h.guard.throttle(handler)
		}
	}
	return routes
}

// routes are served to whom the table says.
func (h *handler) routes() map[string]http.Handler {
	routes := map[string]http.Handler{}
	add := func(pattern string, handler http.HandlerFunc) { routes[pattern] = handler }
	add("GET /v1/whoami", h.whoami)
	add("GET /v1/status", h.status)
	add("GET /v1/rules", h.rules)
	add("POST /v1/refund", h.refund)
	add("POST /v1/reset", h.reset)
	if h.opts.GRPC != nil {
		routes["POST /sluice.v1.AdminService/"] = h.opts.GRPC
	}
	if h.opts.Store != nil {
		add("GET /v1/inspect", h.inspect)
	}
	if h.opts.Tail != nil {
		add("GET /v1/tail", h.tail)
	}
	if h.opts.Explain != nil {
		routes["POST /v1/explain"] = h.opts.Explain
	}
	if h.opts.Pprof {
		add("GET /debug/pprof/", pprof.Index)
		add("GET /debug/pprof/cmdline", hidden) // flags are no secret, but nobody needs them here
		add("GET /debug/pprof/profile", pprof.Profile)
		add("GET /debug/pprof/symbol", pprof.Symbol)
		add("GET /debug/pprof/trace", pprof.Trace)
	}
	h.registryRoutes(func(pattern string, handler http.HandlerFunc) { routes[pattern] = h.withDatabase(handler) })
	return routes
}

// registryRoutes are those that need the database.
func (h *handler) registryRoutes(add func(string, http.HandlerFunc)) {
	add("GET /v1/namespaces", h.namespaces)
	add("POST /v1/namespaces", h.once(h.createNamespace))
	add("POST /v1/namespaces/{ns}/rules:apply", h.once(h.applyRules))
	add("POST /v1/namespaces/{ns}/rollback", h.once(h.rollback))
	serve(h, add, "/v1/namespaces/{ns}/rules", "/{name}", h.ruleEntries())
	serve(h, add, "/v1/tiers", "/{name}", tierEntries())
	serve(h, add, "/v1/subjects", "/{dimension}/{id}", subjectEntries())
	add("POST /v1/subjects:import", h.importSubjects)
	serve(h, add, "/v1/blocks", "/{dimension}/{id}", blockEntries())
	serve(h, add, "/v1/exemptions", "/{dimension}/{id}", exemptionEntries())
	serve(h, add, "/v1/overrides", "/{id}", h.overrideEntries())
	add("POST /v1/overrides", h.once(h.createOverride))
	add("GET /v1/keys", h.keys)
	add("GET /v1/keys/{id}", h.key)
	add("POST /v1/keys", h.once(h.createKey))
	add("POST /v1/keys/{id}/rotate", h.once(h.rotateKey))
	add("DELETE /v1/keys/{id}", h.revokeKey)
	add("GET /v1/tokens", h.tokens)
	add("POST /v1/tokens", h.once(h.createToken))
	add("DELETE /v1/tokens/{id}", h.revokeToken)
	add("GET /v1/nodes", h.nodes)
	add("GET /v1/history", h.history)
}

// withDatabase answers for nodes that have none.
func (h *handler) withDatabase(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.opts.Database == nil {
			writeProblem(w, problem{Status: http.StatusNotImplemented, Detail: "This node has no database, so there is nothing to keep: set database.url."})
			return
		}
		next(w, r)
	})
}

// authorized lets through who has what the route needs. A need of nothing lets nobody through.
func (h *handler) authorized(need adminauth.Need, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		namespace, err := namespaceOf(need.Scope, w, r)
		if err != nil {
			writeError(w, err)
			return
		}
		actor := adminauth.ActorOf(r.Context())
		may := namespace == "" && adminauth.MaySomewhere(actor, need.Role) || adminauth.May(actor, need.Role, namespace)
		if !may {
			refuse(w, need.Role, namespace)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func refuse(w http.ResponseWriter, role registry.Role, namespace string) {
	detail := fmt.Sprintf("This takes the role %s in namespace %q.", role, namespace)
	switch {
	case role == "":
		detail = "Nobody may do this."
	case namespace == "":
		detail = fmt.Sprintf("This takes the role %s in some namespace.", role)
	case namespace == adminauth.Everywhere:
		detail = fmt.Sprintf("This takes the role %s in all namespaces (*).", role)
	}
	writeProblem(w, problem{Status: http.StatusForbidden, Detail: detail})
}

// namespaceOf returns the namespace in which a role is needed; empty: any will do.
func namespaceOf(scope adminauth.Scope, w http.ResponseWriter, r *http.Request) (string, error) {
	told := r.URL.Query().Get("namespace")
	switch scope {
	case adminauth.Path:
		return cmp.Or(r.PathValue("ns"), adminauth.Everywhere), nil
	case adminauth.Query:
		return cmp.Or(told, sluice.DefaultNamespace), nil
	case adminauth.QueryOrAll:
		return cmp.Or(told, adminauth.Everywhere), nil
	case adminauth.Request:
		return namespaceInBody(w, r)
	case adminauth.Any:
		return told, nil
	case adminauth.Entry:
		return "", nil
	default:
		return adminauth.Everywhere, nil
	}
}

// namespaceInBody reads the body as the handler will, by the same parser, and puts it back. A body that is not understood asks for nothing,
// so any namespace will do: the handler tells what is wrong with it.
func namespaceInBody(w http.ResponseWriter, r *http.Request) (string, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return "", fmt.Errorf("%w: the body could not be read: %w", sluice.ErrInvalidRequest, err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	req, err := checkhttp.DecodeRequest(body)
	if err != nil {
		return "", nil //nolint:nilerr // as said above
	}
	return cmp.Or(req.Namespace, sluice.DefaultNamespace), nil
}

// holds tells whether the actor has the role in the namespace that an entry turned out to be in; where not it answers.
func (h *handler) holds(w http.ResponseWriter, r *http.Request, namespace string) bool {
	need := h.opts.Table[r.Pattern]
	if adminauth.May(adminauth.ActorOf(r.Context()), need.Role, namespace) {
		return true
	}
	refuse(w, need.Role, namespace)
	return false
}

// whoami tells callers what they may.
func (h *handler) whoami(w http.ResponseWriter, r *http.Request) {
	actor := adminauth.ActorOf(r.Context())
	writeJSON(w, struct {
		Name   string           `json:"name"`
		Grants []registry.Grant `json:"grants"`
	}{actor.Name, actor.Grants})
}
