package adminhttp

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/ruledoc"
	"github.com/sluicehq/sluice/internal/telemetry"
)

// inspection is what is known about a subject now.
type inspection struct {
	Namespace string          `json:"namespace"`
	Revision  sluice.Revision `json:"revision"`
	Tier      string          `json:"tier,omitempty"`
	Exempt    bool            `json:"exempt,omitempty"`
	Blocked   *blocked        `json:"blocked,omitempty"`
	Counters  []counter       `json:"counters"`
	// Untold are rules that count by something that was not told about the subject.
	Untold []untold `json:"untold,omitempty"`
	// Truncated tells that there are more counters than are shown.
	Truncated bool `json:"truncated,omitempty"`
}

type blocked struct {
	Reason string    `json:"reason"`
	Until  time.Time `json:"until,omitzero"`
}

// counter is one limit of one rule for the subject.
type counter struct {
	Rule   string `json:"rule"`
	Layer  string `json:"layer"`
	Label  string `json:"label"`
	Action string `json:"action"`
	// Applies tells that a request exactly as told would be counted here; else another route, method or tier would.
	Applies  bool              `json:"applies"`
	CountsBy map[string]string `json:"counts_by"`
	Limit    ruledoc.Limit     `json:"limit"`
	// Key is the counter's name in the store.
	Key        string `json:"key,omitempty"`
	Used       int64  `json:"used"`
	Remaining  int64  `json:"remaining"`
	ResetAfter int64  `json:"reset_after_ms"`
	// Error is why the store told nothing about this counter.
	Error string `json:"error,omitempty"`
}

type untold struct {
	Rule  string   `json:"rule"`
	Needs []string `json:"needs"`
}

const (
	// maxInspected counters are shown. More would be a rule with thousands of routes; each costs the store a little.
	maxInspected = 1000
	// inspectTimeout is longer than a decision's: nobody is held up.
	inspectTimeout = 2 * time.Second
)

// inspect shows the counters of a subject, of every rule that can count what was told about it.
func (h *handler) inspect(w http.ResponseWriter, r *http.Request) {
	req, faults := readSubject(r.URL.Query())
	if faults != nil {
		writeProblem(w, problem{Status: http.StatusBadRequest, Detail: "The subject was not understood.", Errors: faults})
		return
	}
	h.opts.Directory.Fill(req.Namespace, &req.Subject)
	rules := h.opts.Rules()
	in := inspection{Namespace: req.Namespace, Revision: rules.Revision(), Tier: req.Subject.Tier, Exempt: req.Subject.Exempt, Counters: []counter{}}
	if b := req.Subject.Blocked; b != nil {
		in.Blocked = &blocked{b.Reason, b.Until}
	}
	found, untold := countersOf(rules, &req)
	in.Untold = untold
	if len(found) > maxInspected {
		found, in.Truncated = found[:maxInspected], true
	}
	ctx, cancel := context.WithTimeout(r.Context(), inspectTimeout)
	defer cancel()
	groups := make([][]sluice.Charge, len(found))
	for i := range found {
		groups[i] = []sluice.Charge{found[i].charge}
	}
	if len(groups) > 0 {
		h.opts.Store.Peek(ctx, groups)
	}
	applies := rules.Match(nil, &req)
	for i, f := range found {
		in.Counters = append(in.Counters, h.describe(f, groups[i][0].State, slices.Contains(applies, f.Matched)))
	}
	writeJSON(w, in)
}

// found is a counter that a subject may have.
type found struct {
	sluice.Matched
	charge sluice.Charge
}

func (h *handler) describe(f found, state sluice.State, applies bool) counter {
	limit := f.charge.Limit
	c := counter{
		Rule: f.Rule.Name, Layer: f.Rule.Layer, Label: f.Rule.Label, Action: f.Rule.Action.String(),
		Applies: applies, CountsBy: map[string]string{}, Limit: ruledoc.FromLimit(limit),
	}
	for _, p := range f.charge.Key.Parts {
		c.CountsBy[string(p.Dimension)] = shown(p)
	}
	if h.opts.KeyOf != nil {
		c.Key = h.opts.KeyOf(f.charge.Key, limit)
	}
	if state.Err != nil {
		c.Error = state.Err.Error()
		return c
	}
	c.Remaining, c.ResetAfter = state.Remaining, (state.ResetAfter + time.Millisecond - 1).Milliseconds()
	c.Used = max(limit.Capacity()-state.Remaining, 0)
	return c
}

// shown is a part of a key as people may see it.
func shown(p sluice.Part) string {
	switch p.Dimension {
	case sluice.APIKey:
		return "sha256:" + telemetry.Fingerprint(p.Value)
	case sluice.IP:
		if ip := p.IP.Unmap(); ip.Is6() {
			return netip.PrefixFrom(ip, 64).Masked().String() // IPv6 is counted by its /64
		}
		return p.IP.Unmap().String()
	}
	return p.Value
}
