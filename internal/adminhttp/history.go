package adminhttp

import (
	"net/http"

	"github.com/sluicehq/sluice/internal/registry"
)

// changeShown is a change with what differs.
type changeShown struct {
	registry.Change
	Diff []difference `json:"diff"`
}

// history lists changes, the newest first, as far as the caller's grants reach.
func (h *handler) history(w http.ResponseWriter, r *http.Request) {
	page, faults := pageOf(r)
	if faults != nil {
		writeProblem(w, problem{Status: http.StatusBadRequest, Detail: "The page was not understood.", Errors: faults})
		return
	}
	query := r.URL.Query()
	filter := registry.HistoryFilter{Namespace: query.Get("namespace"), Kind: registry.Kind(query.Get("kind")), Name: query.Get("name"), Actor: query.Get("actor")}
	listed, err := h.scoped(r).History(r.Context(), filter, page)
	if err != nil {
		writeError(w, err)
		return
	}
	shown := registry.Listed[changeShown]{Items: make([]changeShown, len(listed.Items)), Next: listed.Next}
	for i, c := range listed.Items {
		shown.Items[i] = changeShown{c, diff(c.Before, c.After)}
	}
	writeJSON(w, shown)
}

// nodes lists the nodes that were heard of lately, with the revision that each serves.
func (h *handler) nodes(w http.ResponseWriter, r *http.Request) {
	nodes, err := h.opts.Database.Nodes(r.Context())
	if err != nil {
		writeError(w, err)
		return
	}
	revision, err := h.opts.Database.Revision(r.Context())
	if err != nil {
		writeError(w, err)
		return
	}
	if nodes == nil {
		nodes = []registry.Node{}
	}
	writeJSON(w, struct {
		// Revision is the newest; nodes that serve another have not heard of it yet.
		Revision int64           `json:"revision"`
		Items    []registry.Node `json:"items"`
	}{int64(revision), nodes})
}

func (h *handler) namespaces(w http.ResponseWriter, r *http.Request) {
	list, err := h.scoped(r).Namespaces(r.Context())
	if err != nil {
		writeError(w, err)
		return
	}
	writeListed(w, registry.Listed[registry.Namespace]{Items: list})
}

func (h *handler) createNamespace(w http.ResponseWriter, r *http.Request) {
	var sent struct {
		Name string `json:"name"`
	}
	if !readInto(w, r, &sent, func() []fault {
		if sent.Name == "*" {
			return []fault{{"/name", `"*" stands for all namespaces`}}
		}
		return checkText("/name", sent.Name, 1, 128)
	}) {
		return
	}
	edit := h.edit(w, r)
	created, err := h.scoped(r).CreateNamespace(r.Context(), sent.Name, edit)
	if err != nil {
		writeError(w, err)
		return
	}
	if !edit.DryRun {
		h.wrote(r, edit)
	}
	writeJSONStatus(w, http.StatusCreated, created)
}
