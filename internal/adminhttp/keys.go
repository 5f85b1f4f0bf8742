package adminhttp

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

const (
	// defaultOverlap is how long the old secret of a rotated key is valid, long enough to change it everywhere on a working day.
	defaultOverlap = 24 * time.Hour
	// maxOverlap keeps a rotation from being none.
	maxOverlap = 30 * 24 * time.Hour
)

// shownOnce is an entry with the secret that was made for it. Nobody can ask for that again.
type shownOnce[T any] struct {
	registry.Entry[T]
	Secret string `json:"secret"`
}

func (h *handler) keys(w http.ResponseWriter, r *http.Request) {
	page, faults := pageOf(r)
	if faults != nil {
		writeProblem(w, problem{Status: http.StatusBadRequest, Detail: "The page was not understood.", Errors: faults})
		return
	}
	query := r.URL.Query()
	listed, err := h.scoped(r).Keys(r.Context(), registry.KeyFilter{Owner: query.Get("owner"), Tenant: query.Get("tenant")}, page)
	if err != nil {
		writeError(w, err)
		return
	}
	writeListed(w, listed)
}

func (h *handler) key(w http.ResponseWriter, r *http.Request) {
	entry, err := h.scoped(r).Key(r.Context(), r.PathValue("id"))
	if err != nil {
		writeError(w, err)
		return
	}
	writeEntry(w, http.StatusOK, entry)
}

// createKey makes an API key. The answer is the only place where its secret is ever shown.
func (h *handler) createKey(w http.ResponseWriter, r *http.Request) {
	var sent struct {
		Name      string    `json:"name"`
		Owner     string    `json:"owner"`
		Tenant    string    `json:"tenant"`
		Tier      string    `json:"tier"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	if !readInto(w, r, &sent, func() []fault {
		faults := append(checkText("/name", sent.Name, 0, 255), checkText("/owner", sent.Owner, 1, 255)...)
		faults = append(faults, checkText("/tenant", sent.Tenant, 0, 255)...)
		faults = append(faults, checkText("/tier", sent.Tier, 0, 128)...)
		return append(faults, checkFuture("/expires_at", sent.ExpiresAt)...)
	}) {
		return
	}
	issued, ok := issue(w, h.opts.IssueKey != nil, func() (Issued, error) { return h.opts.IssueKey("") })
	if !ok {
		return
	}
	edit := h.edit(w, r)
	key := registry.Key{ID: issued.ID, Name: sent.Name, Owner: sent.Owner, Tenant: sent.Tenant, Tier: sent.Tier, ExpiresAt: sent.ExpiresAt, Hashes: [][]byte{issued.Hash}}
	entry, err := h.scoped(r).CreateKey(r.Context(), key, edit)
	if err != nil {
		writeError(w, err)
		return
	}
	if edit.DryRun {
		writeTrial(w, nil, &entry, nil)
		return
	}
	h.wrote(r, edit)
	w.Header().Set("Location", "/v1/keys/"+entry.Name)
	writeSecret(w, http.StatusCreated, entry, issued)
}

// rotateKey gives a key another secret. The old one is valid for the overlap.
func (h *handler) rotateKey(w http.ResponseWriter, r *http.Request) {
	sent := struct {
		Overlap ruledoc.Duration `json:"overlap"`
	}{ruledoc.Duration(defaultOverlap)}
	if !readInto(w, r, &sent, func() []fault {
		if sent.Overlap < 0 || sent.Overlap.Std() > maxOverlap {
			return []fault{{"/overlap", fmt.Sprintf("is %s: want 0s to %s", sent.Overlap, ruledoc.Duration(maxOverlap))}}
		}
		return nil
	}) {
		return
	}
	issued, ok := issue(w, h.opts.IssueKey != nil, func() (Issued, error) { return h.opts.IssueKey(r.PathValue("id")) })
	if !ok {
		return
	}
	edit := h.edit(w, r)
	edit.IfVersion = max(conditionOf(r, false).version, 0)
	entry, err := h.scoped(r).RotateKey(r.Context(), r.PathValue("id"), issued.Hash, time.Now().Add(sent.Overlap.Std()), edit)
	if err != nil {
		conditionOf(r, false).write(w, err)
		return
	}
	if edit.DryRun {
		writeTrial(w, nil, &entry, nil)
		return
	}
	h.wrote(r, edit)
	writeSecret(w, http.StatusOK, entry, issued)
}

// revokeKey ends a key for good, on every node within a second.
func (h *handler) revokeKey(w http.ResponseWriter, r *http.Request) {
	revoke(h, w, r, h.scoped(r).RevokeKey)
}

// revoke ends what the path names, by the method that does.
func revoke[T any](h *handler, w http.ResponseWriter, r *http.Request, end func(context.Context, string, registry.Edit) (registry.Entry[T], error)) {
	edit, condition := h.edit(w, r), conditionOf(r, false)
	edit.IfVersion = max(condition.version, 0)
	entry, err := end(r.Context(), r.PathValue("id"), edit)
	if err != nil {
		condition.write(w, err)
		return
	}
	if edit.DryRun {
		writeTrial(w, nil, &entry, nil)
		return
	}
	h.wrote(r, edit)
	writeEntry(w, http.StatusOK, entry)
}

func writeSecret[T any](w http.ResponseWriter, status int, entry registry.Entry[T], issued Issued) {
	w.Header().Set("ETag", etag(entry.Version))
	writeJSONStatus(w, status, shownOnce[T]{entry, issued.Text})
}

// issue makes a secret, where the node has what that takes.
func issue(w http.ResponseWriter, can bool, one func() (Issued, error)) (Issued, bool) {
	if !can {
		writeProblem(w, problem{Status: http.StatusNotImplemented, Detail: "This node can make no secrets: set control.pepper."})
		return Issued{}, false
	}
	issued, err := one()
	if err != nil {
		writeProblem(w, problem{Status: http.StatusNotImplemented, Detail: "This node can make no secrets: " + err.Error()})
		return Issued{}, false
	}
	return issued, true
}

// readInto reads the body, if there is one, and checks what was read; where something is wrong it answers.
func readInto(w http.ResponseWriter, r *http.Request, into any, check func() []fault) bool {
	body, err := readAll(w, r, maxBody)
	if err != nil {
		writeError(w, err)
		return false
	}
	var faults []fault
	if len(body) > 0 {
		faults = decode(body, into)
	}
	if faults == nil {
		faults = check()
	}
	if faults != nil {
		writeFaults(w, faults)
		return false
	}
	return true
}

func checkFuture(pointer string, t time.Time) []fault {
	if !t.IsZero() && !t.After(time.Now()) {
		return []fault{{pointer, "has passed already"}}
	}
	return nil
}
