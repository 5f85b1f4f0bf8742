package adminhttp

import (
	"fmt"
	"net/http"
	"time"

	"github.com/sluicehq/sluice/internal/adminauth"
	"github.com/sluicehq/sluice/internal/registry"
)

// maxGrants is more than anybody needs: whoever needs more needs "*".
const maxGrants = 100

func (h *handler) tokens(w http.ResponseWriter, r *http.Request) {
	page, faults := pageOf(r)
	if faults != nil {
		writeProblem(w, problem{Status: http.StatusBadRequest, Detail: "The page was not understood.", Errors: faults})
		return
	}
	listed, err := h.scoped(r).Tokens(r.Context(), page)
	if err != nil {
		writeError(w, err)
		return
	}
	writeListed(w, listed)
}

// createToken makes a token for an operator's program. The answer is the only place where its secret is ever shown.
func (h *handler) createToken(w http.ResponseWriter, r *http.Request) {
	var sent struct {
		Name      string           `json:"name"`
		Grants    []registry.Grant `json:"grants"`
		ExpiresAt time.Time        `json:"expires_at"`
	}
	if !readInto(w, r, &sent, func() []fault {
		faults := append(checkText("/name", sent.Name, 1, 255), checkGrants(sent.Grants)...)
		return append(faults, checkFuture("/expires_at", sent.ExpiresAt)...)
	}) {
		return
	}
	issued, ok := issue(w, h.opts.IssueToken != nil, h.opts.IssueToken)
	if !ok {
		return
	}
	edit := h.edit(w, r)
	token := registry.Token{ID: issued.ID, Name: sent.Name, Grants: sent.Grants, ExpiresAt: sent.ExpiresAt, Hash: issued.Hash}
	entry, err := h.scoped(r).CreateToken(r.Context(), token, edit)
	if err != nil {
		writeError(w, err)
		return
	}
	if edit.DryRun {
		writeTrial(w, nil, &entry, nil)
		return
	}
	h.wrote(r, edit)
	writeSecret(w, http.StatusCreated, entry, issued)
}

func checkGrants(grants []registry.Grant) (faults []fault) {
	switch {
	case len(grants) == 0:
		return []fault{{"/grants", "is missing: without a grant the token may nothing"}}
	case len(grants) > maxGrants:
		return []fault{{"/grants", fmt.Sprintf("has %d: %d are the most", len(grants), maxGrants)}}
	}
	for i, g := range grants {
		at := fmt.Sprintf("/grants/%d", i)
		faults = append(faults, checkText(at+"/namespace", g.Namespace, 1, 128)...)
		if !adminauth.Known(g.Role) {
			faults = append(faults, fault{at + "/role", fmt.Sprintf("is %q: want viewer, operator or admin", g.Role)})
		}
	}
	return faults
}

// revokeToken ends a token for good, on every node within a second.
func (h *handler) revokeToken(w http.ResponseWriter, r *http.Request) {
	revoke(h, w, r, h.scoped(r).RevokeToken)
}
