package adminhttp

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/adminauth"
	"github.com/sluicehq/sluice/internal/checkhttp"
	"github.com/sluicehq/sluice/internal/telemetry"
)

// maxBody is the most a request to change something may have.
const maxBody = 64 << 10

// change is something done to the counters of a request.
type change struct {
	do   func(context.Context, sluice.Request) error
	done string // for the log
}

// changed tells whose counters a change was made to.
type changed struct {
	Namespace string   `json:"namespace"`
	Rules     []string `json:"rules"`
	// Cost is what was given back; absent: each rule's own cost.
	Cost int64 `json:"cost,omitempty"`
}

// refund gives back the request's cost to every rule that matches it.
func (h *handler) refund(w http.ResponseWriter, r *http.Request) {
	h.change(w, r, change{h.engine.Credit, "units were given back"})
}

// reset forgets the counters of every rule that matches the request.
func (h *handler) reset(w http.ResponseWriter, r *http.Request) {
	h.change(w, r, change{h.engine.Reset, "counters were reset"})
}

func (h *handler) change(w http.ResponseWriter, r *http.Request, c change) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		writeError(w, fmt.Errorf("%w: the body could not be read: %w", sluice.ErrInvalidRequest, err))
		return
	}
	req, err := checkhttp.DecodeRequest(body)
	if err != nil {
		writeError(w, err)
		return
	}
	answer := h.concerned(req)
	if len(answer.Rules) == 0 {
		writeProblem(w, problem{Status: http.StatusNotFound, Detail: "No rule with a limit matches, so nothing was done. Tell everything that the rules match on, such as the route; /v1/explain shows what is missing."})
		return
	}
	if err := c.do(r.Context(), req); err != nil {
		writeError(w, err)
		return
	}
	attrs := append([]slog.Attr{
		slog.String("actor", adminauth.ActorOf(r.Context()).Name), slog.String("from", r.RemoteAddr), slog.String("namespace", answer.Namespace), slog.Any("rules", answer.Rules), slog.Int64("cost", req.Cost),
	}, telemetry.Who(&req.Subject)...)
	h.opts.Log.LogAttrs(r.Context(), slog.LevelInfo, c.done, attrs...)
	writeJSON(w, answer)
}

// concerned lists the rules whose counters a change of the request touches.
func (h *handler) concerned(req sluice.Request) changed {
	c := changed{Namespace: req.Namespace, Rules: []string{}, Cost: req.Cost}
	if c.Namespace == "" {
		c.Namespace = sluice.DefaultNamespace
	}
	h.opts.Directory.Fill(c.Namespace, &req.Subject)
	for _, m := range h.opts.Rules().Match(nil, &req) {
		switch m.Rule.Action {
		case sluice.Block: // such a request is charged nowhere
			return changed{Namespace: c.Namespace}
		case sluice.Allow:
		default:
			c.Rules = append(c.Rules, m.Rule.Name)
		}
	}
	return c
}
