// Package checkhttp is the HTTP door for services that ask in JSON:
//
//	POST /v1/check          decides and charges: 200 when allowed, the rule's status (usually 429) when refused
//	POST /v1/check/batch    up to 1,000 questions, each with an answer of its own
//	POST /v1/peek           decides as check would and charges nothing
//	POST /v1/explain        tells which rules match, why the others do not, and what is left
//
// Faults come as problem documents (RFC 9457) that point at each field. The callers are the operator's own services, so
// answers name rules; header fields carry labels only and may be passed on to clients.
package checkhttp

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/httplimit"
)

// Engine decides; see engine.Engine.
type Engine interface {
	Check(ctx context.Context, req sluice.Request) (sluice.Decision, error)
	CheckAll(ctx context.Context, reqs []sluice.Request, decisions []sluice.Decision) error
	Peek(ctx context.Context, req sluice.Request) (sluice.Decision, error)
	Explain(ctx context.Context, req sluice.Request) (sluice.Explanation, error)
}

// Options tune the handler. The zero value works.
type Options struct {
	// Headers chooses the header fields of /v1/check. Default httplimit.IETF | httplimit.XRateLimit.
	Headers httplimit.Dialects
	// Now is the clock that X-RateLimit-Reset counts from. It decides nothing. Default time.Now.
	Now func() time.Time
}

// New returns the handler of the paths above; it answers 404 to all others.
func New(engine Engine, opts Options) http.Handler {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	h := &handler{engine: engine, opts: opts}
	h.pool.New = func() any { return new(exchange) }
	return h
}

type handler struct {
	engine Engine
	opts   Options
	pool   sync.Pool
}

// exchange is the memory of one request and its answer. It is reused.
type exchange struct {
	in, out []byte
}

// ServeHTTP answers a question.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var answer func(http.ResponseWriter, *http.Request, *exchange)
	switch r.URL.Path {
	case "/v1/check":
		answer = h.check
	case "/v1/check/batch":
		answer = h.batch
	case "/v1/peek":
		answer = h.peek
	case "/v1/explain":
		answer = h.explain
	default:
		writeProblem(w, problem{Status: http.StatusNotFound, Detail: "Ask at /v1/check, /v1/check/batch, /v1/peek or /v1/explain."})
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		writeProblem(w, problem{Status: http.StatusMethodNotAllowed, Detail: "Questions are sent by POST."})
		return
	}
	x := h.pool.Get().(*exchange)
	defer h.release(x)
	if err := x.read(w, r); err != nil {
		writeError(w, err)
		return
	}
	answer(w, r, x)
}

// release keeps the memory, unless an answer was unusually large.
func (h *handler) release(x *exchange) {
	if cap(x.in) <= maxBody && cap(x.out) <= maxBody {
		x.in, x.out = x.in[:0], x.out[:0]
		h.pool.Put(x)
	}
}

func (h *handler) check(w http.ResponseWriter, r *http.Request, x *exchange) {
	req, err := DecodeRequest(x.in)
	if err != nil {
		writeError(w, err)
		return
	}
	began := time.Now()
	d, err := h.engine.Check(r.Context(), req)
	timing(w, time.Since(began))
	if err != nil {
		writeError(w, err)
		return
	}
	httplimit.WriteHeaders(w.Header(), &d, h.opts.Headers, h.opts.Now())
	status := http.StatusOK
	if !d.Allowed {
		status = httplimit.Status(&d)
	}
	x.out = AppendDecision(x.out, &d)
	x.write(w, status)
}

func (h *handler) peek(w http.ResponseWriter, r *http.Request, x *exchange) {
	req, err := DecodeRequest(x.in)
	if err != nil {
		writeError(w, err)
		return
	}
	began := time.Now()
	d, err := h.engine.Peek(r.Context(), req)
	timing(w, time.Since(began))
	if err != nil {
		writeError(w, err)
		return
	}
	x.out = AppendDecision(x.out, &d)
	x.write(w, http.StatusOK)
}

func (h *handler) explain(w http.ResponseWriter, r *http.Request, x *exchange) {
	req, err := DecodeRequest(x.in)
	if err != nil {
		writeError(w, err)
		return
	}
	began := time.Now()
	e, err := h.engine.Explain(r.Context(), req)
	timing(w, time.Since(began))
	if err != nil {
		writeError(w, err)
		return
	}
	x.out = AppendExplanation(x.out, &e)
	x.write(w, http.StatusOK)
}

func (h *handler) batch(w http.ResponseWriter, r *http.Request, x *exchange) {
	b, err := decodeBatch(x.in)
	if err != nil {
		writeError(w, err)
		return
	}
	decisions := make([]sluice.Decision, len(b.valid))
	began := time.Now()
	err = h.engine.CheckAll(r.Context(), b.valid, decisions)
	timing(w, time.Since(began))
	if err != nil {
		writeError(w, err)
		return
	}
	x.out = b.appendAnswers(x.out, decisions)
	x.write(w, http.StatusOK)
}

// timing tells how long the decision took in here, without network and parsing.
func timing(w http.ResponseWriter, took time.Duration) {
	const perMillisecond, decimals = float64(time.Millisecond), 3
	w.Header()["Server-Timing"] = []string{"sluice;dur=" + strconv.FormatFloat(float64(took)/perMillisecond, 'f', decimals, 64)}
}

func (x *exchange) write(w http.ResponseWriter, status int) {
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Cache-Control"] = []string{"no-store"}
	w.WriteHeader(status)
	_, _ = w.Write(append(x.out, '\n')) // fails when the client is gone
}
