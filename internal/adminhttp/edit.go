package adminhttp

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/adminauth"
	"github.com/sluicehq/sluice/internal/registry"
)

// maxEntry is the most one entry may have, as much as the database keeps.
const maxEntry = 256 << 10

// requestID is what names of calls are made of: they stand in logs and in the history.
var requestID = regexp.MustCompile(`^[\w.:/+=-]{1,128}$`)

// edit is the circumstances of a change: who, why, under which name of the call, and whether it is only a trial.
func (h *handler) edit(w http.ResponseWriter, r *http.Request) registry.Edit {
	query := r.URL.Query()
	id := r.Header.Get("X-Request-Id")
	if !requestID.MatchString(id) {
		id = rand.Text()
	}
	w.Header().Set("X-Request-Id", id)
	return registry.Edit{Actor: adminauth.ActorOf(r.Context()).Name, Reason: query.Get("reason"), RequestID: id, DryRun: isTrial(r)}
}

// isTrial tells whether the caller only wants to know. Whatever is there but "0" and "false" counts, so that nothing is done by mistake.
func isTrial(r *http.Request) bool {
	query := r.URL.Query()
	value := query.Get("dry_run")
	return query.Has("dry_run") && value != "0" && value != "false"
}

// condition is what If-Match and If-None-Match ask for.
type condition struct {
	// version is as in registry.Edit.
	version int64
	// unsaid: nothing was asked for, where it must be.
	unsaid bool
	// asked: the version was.
	asked bool
}

// impossible is a version that no entry has: tags that are not ours match nothing.
const impossible = 1<<63 - 1

func conditionOf(r *http.Request, required bool) condition {
	match, none := strings.TrimSpace(r.Header.Get("If-Match")), strings.TrimSpace(r.Header.Get("If-None-Match"))
	switch {
	case match == "*":
		return condition{}
	case match != "":
		text, isTag := strings.CutPrefix(match, `"`)
		text, isWhole := strings.CutSuffix(text, `"`)
		version, err := strconv.ParseInt(text, 10, 64)
		if !isTag || !isWhole || err != nil || version <= 0 || etag(version) != match {
			version = impossible
		}
		return condition{version: version, asked: true}
	case none == "*":
		return condition{version: -1, asked: true}
	case required:
		return condition{version: -1, unsaid: true}
	}
	return condition{}
}

// write answers what a write under the condition came to.
func (c condition) write(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, registry.ErrExists) && c.unsaid:
		writeProblem(w, problem{
			Status: http.StatusPreconditionRequired,
			Detail: "There is such an entry already. To change or delete it, send its ETag as If-Match, so that nobody else's change is lost.",
		})
	case errors.Is(err, registry.ErrExists) && c.asked:
		writeProblem(w, problem{Status: http.StatusPreconditionFailed, Detail: err.Error()})
	case errors.Is(err, registry.ErrConflict) && !c.asked:
		writeProblem(w, problem{Status: http.StatusConflict, Detail: err.Error()})
	default:
		writeError(w, err)
	}
}

// pageOf reads ?limit= and ?cursor=.
func pageOf(r *http.Request) (registry.Page, []fault) {
	query := r.URL.Query()
	page := registry.Page{After: query.Get("cursor")}
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1000 {
			return page, []fault{{"limit", "must be a number from 1 to 1000"}}
		}
		page.Limit = n
	}
	return page, nil
}

func readAll(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		return nil, fmt.Errorf("%w: the body could not be read: %w", sluice.ErrInvalidRequest, err)
	}
	return body, nil
}

// decode reads JSON strictly: unknown fields and anything behind are faults. An empty body is an empty object where it may be.
func decode(body []byte, into any) []fault {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		return []fault{{"/" + strings.ReplaceAll(wrong.Field, ".", "/"), fmt.Sprintf("is a %s: want %s", wrong.Value, plain(wrong.Type.String()))}}
	case err != nil && strings.HasPrefix(err.Error(), unknownField):
		return []fault{{"/" + strings.Trim(strings.TrimPrefix(err.Error(), unknownField), `"`), "is not a field"}}
	case err != nil:
		return []fault{{"", strings.TrimPrefix(err.Error(), "json: ")}}
	case d.More():
		return []fault{{"", "is followed by something else: send one object"}}
	}
	return nil
}

// unknownField begins the only error that encoding/json has for such fields; it has no type.
const unknownField = "json: unknown field "

// plain is the name of a type as somebody who writes JSON knows it.
func plain(name string) string {
	switch {
	case strings.HasPrefix(name, "[]"):
		return "a list"
	case strings.HasPrefix(name, "int"):
		return "a whole number"
	case name == "bool":
		return "true or false"
	case name == "string":
		return "a text"
	}
	return "an object"
}

func writeFaults(w http.ResponseWriter, faults []fault) {
	writeProblem(w, problem{Status: http.StatusUnprocessableEntity, Detail: "Nothing was changed: correct what is listed.", Errors: faults})
}
