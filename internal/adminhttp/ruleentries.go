package adminhttp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/postgres"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

// maxRules is the most a whole namespace may have: as much as a file of rules.
const maxRules = ruledoc.MaxFileSize

func (h *handler) ruleEntries() entries[ruledoc.Rule] {
	return entries[ruledoc.Rule]{
		list: func(ctx context.Context, s *postgres.Scoped, r *http.Request, p registry.Page) (registry.Listed[registry.Rule], error) {
			return s.Rules(ctx, r.PathValue("ns"), p)
		},
		get: func(ctx context.Context, s *postgres.Scoped, r *http.Request) (registry.Rule, error) {
			return s.Rule(ctx, r.PathValue("ns"), r.PathValue("name"))
		},
		read: h.readRule,
		put: func(ctx context.Context, s *postgres.Scoped, rule ruledoc.Rule, e registry.Edit) (registry.Rule, error) {
			return s.PutRule(ctx, rule.Namespace, rule, e)
		},
		remove: func(ctx context.Context, s *postgres.Scoped, r *http.Request, e registry.Edit) error {
			return s.DeleteRule(ctx, r.PathValue("ns"), r.PathValue("name"), e)
		},
		versioned: true,
		foresee: func(r *http.Request, after *ruledoc.Rule) *verdicts {
			ns, name := r.PathValue("ns"), r.PathValue("name")
			var changed []ruledoc.Rule
			if after != nil {
				changed = append(changed, *after)
			}
			return h.verdicts(r.Context(), ns, changed, func(other string) bool { return other != name })
		},
	}
}

// readRule checks a rule alone and among those in force.
func (h *handler) readRule(r *http.Request, body []byte) (ruledoc.Rule, []fault) {
	ns, name := r.PathValue("ns"), r.PathValue("name")
	rule, faults := parseRule(body, ns, name, "")
	if faults != nil {
		return rule, faults
	}
	return rule, h.compile(ns, []ruledoc.Rule{rule}, func(int) string { return "" }, func(other string) bool { return other != name })
}

// applied is what was done, or would be.
type applied struct {
	registry.Applied
	DryRun   bool      `json:"dry_run,omitempty"`
	Verdicts *verdicts `json:"verdicts,omitempty"`
}

// applyRules makes the rules of a namespace those in the body, all in one revision. With prune, others are deleted. With if_versions, nothing
// is done where somebody else was faster.
func (h *handler) applyRules(w http.ResponseWriter, r *http.Request) {
	ns := r.PathValue("ns")
	body, err := readAll(w, r, maxRules)
	if err != nil {
		writeError(w, err)
		return
	}
	var sent struct {
		Rules []json.RawMessage `json:"rules"`
		Prune bool              `json:"prune"`
		// IfVersions is as in registry.Edit.
		IfVersions map[string]int64 `json:"if_versions"`
	}
	faults := decode(body, &sent)
	var rules []ruledoc.Rule
	if faults == nil {
		rules, faults = h.readRules(ns, sent.Rules, sent.Prune)
	}
	if faults != nil {
		writeFaults(w, faults)
		return
	}
	edit := h.edit(w, r)
	edit.IfVersions = sent.IfVersions
	a, err := h.scoped(r).ApplyRules(r.Context(), ns, rules, sent.Prune, edit)
	if err != nil {
		writeError(w, err)
		return
	}
	h.writeApplied(w, r, edit, a, func() *verdicts {
		return h.verdicts(r.Context(), ns, rules, keptBy(rules, sent.Prune))
	})
}

func (h *handler) writeApplied(w http.ResponseWriter, r *http.Request, edit registry.Edit, a registry.Applied, foresee func() *verdicts) {
	if edit.DryRun {
		writeJSON(w, applied{Applied: a, DryRun: true, Verdicts: foresee()})
		return
	}
	h.wrote(r, edit)
	writeJSON(w, applied{Applied: a})
}

// keptBy tells which of the other rules stay when these are applied.
func keptBy(rules []ruledoc.Rule, prune bool) func(name string) bool {
	given := make(map[string]bool, len(rules))
	for _, rule := range rules {
		given[rule.Name] = true
	}
	return func(name string) bool { return !prune && !given[name] }
}

func (h *handler) readRules(ns string, texts []json.RawMessage, prune bool) (rules []ruledoc.Rule, faults []fault) {
	if len(texts) > sluice.MaxRules {
		return nil, []fault{{"/rules", fmt.Sprintf("has %d rules: a namespace holds %d at most", len(texts), sluice.MaxRules)}}
	}
	at := func(i int) string { return fmt.Sprintf("/rules/%d", i) }
	for i, text := range texts {
		rule, wrong := parseRule(text, ns, "", at(i))
		rules, faults = append(rules, rule), append(faults, wrong...)
	}
	if faults != nil {
		return nil, capFaults(faults)
	}
	return rules, h.compile(ns, rules, at, keptBy(rules, prune))
}

// rollback makes the rules of a namespace what they were at a revision. It is a change like any other, with a revision of its own.
func (h *handler) rollback(w http.ResponseWriter, r *http.Request) {
	body, err := readAll(w, r, maxRules) // the versions of ten thousand rules take more than maxBody
	if err != nil {
		writeError(w, err)
		return
	}
	var sent struct {
		Revision   *sluice.Revision `json:"revision"`
		Reason     string           `json:"reason"`
		IfVersions map[string]int64 `json:"if_versions"`
	}
	faults := decode(body, &sent)
	if faults == nil && (sent.Revision == nil || *sent.Revision < 0) {
		faults = []fault{{"/revision", "is missing: say to which, as the history numbers them"}}
	}
	if faults != nil {
		writeFaults(w, faults)
		return
	}
	edit := h.edit(w, r)
	edit.IfVersions = sent.IfVersions
	if sent.Reason != "" {
		edit.Reason = sent.Reason
	}
	a, err := h.scoped(r).RollbackRules(r.Context(), r.PathValue("ns"), *sent.Revision, edit)
	if err != nil {
		writeError(w, err)
		return
	}
	h.writeApplied(w, r, edit, a, func() *verdicts {
		return &verdicts{Unknown: "verdicts are told for rules that are sent, not for those of a former revision"}
	})
}
