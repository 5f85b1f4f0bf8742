package adminhttp

import (
	"context"
	"net/http"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/postgres"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

func (h *handler) overrideEntries() entries[registry.Override] {
	return entries[registry.Override]{
		list: func(ctx context.Context, s *postgres.Scoped, r *http.Request, p registry.Page) (registry.Listed[registry.Entry[registry.Override]], error) {
			query := r.URL.Query()
			return s.Overrides(ctx, registry.OverrideFilter{
				Namespace: query.Get("namespace"), Rule: query.Get("rule"),
				Who: registry.Who{Dimension: query.Get("dimension"), ID: query.Get("id")},
			}, p)
		},
		get: func(ctx context.Context, s *postgres.Scoped, r *http.Request) (registry.Entry[registry.Override], error) {
			return s.Override(ctx, r.PathValue("id"))
		},
		read: func(r *http.Request, body []byte) (registry.Override, []fault) {
			o, faults := readOverride(body)
			o.ID = r.PathValue("id")
			return o, faults
		},
		put: func(ctx context.Context, s *postgres.Scoped, o registry.Override, e registry.Edit) (registry.Entry[registry.Override], error) {
			if e.IfVersion < 0 { // the database gives the ids
				e.IfVersion = impossible
			}
			return s.PutOverride(ctx, o, because(e, o.Reason))
		},
		remove: func(ctx context.Context, s *postgres.Scoped, r *http.Request, e registry.Edit) error {
			return s.DeleteOverride(ctx, r.PathValue("id"), e)
		},
		namespace: func(o registry.Override) string { return o.Namespace },
	}
}

func readOverride(body []byte) (registry.Override, []fault) {
	var o registry.Override
	if faults := decode(body, &o); faults != nil {
		return o, faults
	}
	if o.Namespace == "" {
		o.Namespace = sluice.DefaultNamespace
	}
	o.Author = "" // whoever asks
	var faults []fault
	o.Who, faults = checkWho(o.Who, false)
	faults = append(faults, checkText("/namespace", o.Namespace, 1, 128)...)
	faults = append(faults, checkText("/rule", o.Rule, 1, 128)...)
	faults = append(faults, checkText("/reason", o.Reason, 1, 2000)...)
	// The subject is checked above: here it only has to be one.
	written := ruledoc.Override{Who: ruledoc.Who{User: "-"}, Rule: "-", Limits: o.Limits, ValidFrom: o.ValidFrom, ValidUntil: o.ValidUntil}
	_, found := ruledoc.FromDocument("", ruledoc.Document{Overrides: []ruledoc.Override{written}})
	for _, f := range found {
		faults = append(faults, fault{pointerOf(f.Field), f.Err.Error()})
	}
	return o, capFaults(faults)
}

// createOverride adds an override; the database gives its id.
func (h *handler) createOverride(w http.ResponseWriter, r *http.Request) {
	body, err := readAll(w, r, maxBody)
	if err != nil {
		writeError(w, err)
		return
	}
	o, faults := readOverride(body)
	if faults != nil {
		writeFaults(w, faults)
		return
	}
	if !h.holds(w, r, o.Namespace) {
		return
	}
	o.ID = ""
	edit := because(h.edit(w, r), o.Reason)
	entry, err := h.scoped(r).PutOverride(r.Context(), o, edit)
	if err != nil {
		writeError(w, err)
		return
	}
	if edit.DryRun {
		writeTrial(w, nil, &entry, nil)
		return
	}
	h.wrote(r, edit)
	w.Header().Set("Location", "/v1/overrides/"+entry.Name)
	writeEntry(w, http.StatusCreated, entry)
}
