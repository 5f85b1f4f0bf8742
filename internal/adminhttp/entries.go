package adminhttp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/sluicehq/sluice/internal/adminauth"
	"github.com/sluicehq/sluice/internal/postgres"
	"github.com/sluicehq/sluice/internal/registry"
)

// entries are things of one kind, kept under names: how they are found, checked and written.
type entries[T any] struct {
	list func(context.Context, *postgres.Scoped, *http.Request, registry.Page) (registry.Listed[registry.Entry[T]], error)
	get  func(context.Context, *postgres.Scoped, *http.Request) (registry.Entry[T], error)
	// read makes an entry of the body. It reports every fault.
	read   func(r *http.Request, body []byte) (T, []fault)
	put    func(context.Context, *postgres.Scoped, T, registry.Edit) (registry.Entry[T], error)
	remove func(context.Context, *postgres.Scoped, *http.Request, registry.Edit) error
	// namespace is set where it is the entry that tells it.
	namespace func(T) string
	// versioned asks for If-Match where there is an entry: changes of it by two people at once would be noticed too late.
	versioned bool
	// foresee tells what a change would do to requests. Optional.
	foresee func(r *http.Request, after *T) *verdicts
}

// serve adds the routes of entries: the list, and one by its name.
func serve[T any](h *handler, add func(string, http.HandlerFunc), path, name string, e entries[T]) {
	add("GET "+path, func(w http.ResponseWriter, r *http.Request) { listEntries(h, e, w, r) })
	add("GET "+path+name, func(w http.ResponseWriter, r *http.Request) { getEntry(h, e, w, r) })
	add("PUT "+path+name, func(w http.ResponseWriter, r *http.Request) { putEntry(h, e, w, r) })
	add("DELETE "+path+name, func(w http.ResponseWriter, r *http.Request) { deleteEntry(h, e, w, r) })
}

// scoped is the database as far as the caller's grants reach.
func (h *handler) scoped(r *http.Request) *postgres.Scoped {
	return h.opts.Database.As(adminauth.ActorOf(r.Context()))
}

func listEntries[T any](h *handler, e entries[T], w http.ResponseWriter, r *http.Request) {
	page, faults := pageOf(r)
	if faults != nil {
		writeProblem(w, problem{Status: http.StatusBadRequest, Detail: "The page was not understood.", Errors: faults})
		return
	}
	listed, err := e.list(r.Context(), h.scoped(r), r, page)
	if err != nil {
		writeError(w, err)
		return
	}
	writeListed(w, listed)
}

func writeListed[T any](w http.ResponseWriter, listed registry.Listed[T]) {
	if listed.Items == nil {
		listed.Items = []T{}
	}
	writeJSON(w, listed)
}

func getEntry[T any](h *handler, e entries[T], w http.ResponseWriter, r *http.Request) {
	entry, err := e.get(r.Context(), h.scoped(r), r)
	if err != nil {
		writeError(w, err)
		return
	}
	if e.namespace != nil && !h.holds(w, r, e.namespace(entry.Body)) {
		return
	}
	writeEntry(w, http.StatusOK, entry)
}

func writeEntry[T any](w http.ResponseWriter, status int, entry registry.Entry[T]) {
	w.Header().Set("ETag", etag(entry.Version))
	writeJSONStatus(w, status, entry)
}

func etag(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

func putEntry[T any](h *handler, e entries[T], w http.ResponseWriter, r *http.Request) {
	body, err := readAll(w, r, maxEntry)
	if err != nil {
		writeError(w, err)
		return
	}
	value, faults := e.read(r, body)
	if faults != nil {
		writeFaults(w, faults)
		return
	}
	if e.namespace != nil && !heldEntry(h, e, w, r, value) {
		return
	}
	edit, condition := h.edit(w, r), conditionOf(r, e.versioned)
	edit.IfVersion = condition.version
	var before *registry.Entry[T]
	if edit.DryRun {
		if before, err = current(h, e, r); err != nil {
			writeError(w, err)
			return
		}
	}
	after, err := e.put(r.Context(), h.scoped(r), value, edit)
	if err != nil {
		condition.write(w, err)
		return
	}
	if edit.DryRun {
		writeTrial(w, before, &after, foreseen(e, r, &after.Body))
		return
	}
	h.wrote(r, edit)
	status := http.StatusOK
	if condition.version < 0 {
		status = http.StatusCreated
	}
	writeEntry(w, status, after)
}

// heldEntry asks for the role in the namespace of the entry that is there, not only in the one that was sent.
func heldEntry[T any](h *handler, e entries[T], w http.ResponseWriter, r *http.Request, value T) bool {
	there, err := current(h, e, r)
	if err != nil {
		writeError(w, err)
		return false
	}
	if there != nil {
		value = there.Body
	}
	return h.holds(w, r, e.namespace(value))
}

func deleteEntry[T any](h *handler, e entries[T], w http.ResponseWriter, r *http.Request) {
	edit, condition := h.edit(w, r), conditionOf(r, e.versioned)
	edit.IfVersion = max(condition.version, 0)
	before, err := current(h, e, r)
	switch {
	case err != nil:
		writeError(w, err)
		return
	case before == nil:
		writeProblem(w, problem{Status: http.StatusNotFound, Detail: "There is no such entry."})
		return
	case e.namespace != nil && !h.holds(w, r, e.namespace(before.Body)):
		return
	case condition.unsaid:
		condition.write(w, registry.ErrExists)
		return
	}
	if err := e.remove(r.Context(), h.scoped(r), r, edit); err != nil {
		condition.write(w, err)
		return
	}
	if edit.DryRun {
		writeTrial[T](w, before, nil, foreseen(e, r, nil))
		return
	}
	h.wrote(r, edit)
	w.WriteHeader(http.StatusNoContent)
}

func foreseen[T any](e entries[T], r *http.Request, after *T) *verdicts {
	if e.foresee == nil {
		return nil
	}
	return e.foresee(r, after)
}

// current returns the entry, nil where there is none.
func current[T any](h *handler, e entries[T], r *http.Request) (*registry.Entry[T], error) {
	entry, err := e.get(r.Context(), h.scoped(r), r)
	if errors.Is(err, registry.ErrNotFound) {
		return nil, nil //nolint:nilnil // none is no error here
	}
	return &entry, err
}

// wrote tells the log; what was written is in the history.
func (h *handler) wrote(r *http.Request, edit registry.Edit) {
	h.opts.Log.LogAttrs(r.Context(), slog.LevelInfo, "changed by an operator", slog.String("actor", edit.Actor),
		slog.String("from", r.RemoteAddr), slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.String("request_id", edit.RequestID))
}
