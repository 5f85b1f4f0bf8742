package adminhttp

import (
	"bytes"
	"crypto/sha256"
	"io"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/sluicehq/sluice/internal/adminauth"
)

const (
	// maxReplays answers are remembered, for replayFor. Beyond it the oldest is forgotten.
	maxReplays = 1000
	replayFor  = time.Hour
	// maxReplayKey is the longest key.
	maxReplayKey = 255
)

// replays remember the answers to POST requests with an Idempotency-Key, so that one that is sent again does nothing twice. They are
// remembered by this node alone: what is sent again to another node is done again.
type replays struct {
	mu    sync.Mutex
	known map[replayKey]*replay
	order []replayKey
}

// replayKey is a caller's own key for a request to one place.
type replayKey struct{ actor, uri, key string }

// replay is an answer, or nil header while there is none yet.
type replay struct {
	body   [sha256.Size]byte // of the request
	at     time.Time
	status int
	header http.Header
	answer []byte
}

func newReplays() *replays { return &replays{known: map[replayKey]*replay{}} }

// once lets a request with an Idempotency-Key through one time.
func (h *handler) once(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		key := replayKey{adminauth.ActorOf(r.Context()).Name, r.URL.RequestURI(), r.Header.Get("Idempotency-Key")}
		if key.key == "" {
			next(w, r)
			return
		}
		if len(key.key) > maxReplayKey {
			writeProblem(w, problem{Status: http.StatusBadRequest, Detail: "The Idempotency-Key has more than 255 characters."})
			return
		}
		body, err := readAll(w, r, maxRules)
		if err != nil {
			writeError(w, err)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		sum := sha256.Sum256(body)
		if before, isNew := h.replays.begin(key, sum); !isNew {
			before.write(w, sum)
			return
		}
		kept := &keptWriter{ResponseWriter: w, status: http.StatusOK}
		defer func() { h.replays.end(key, kept) }()
		next(kept, r)
	}
}

// begin returns what is remembered, or notes that the request is under way.
func (s *replays) begin(key replayKey, body [sha256.Size]byte) (replay, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if found := s.known[key]; found != nil && now.Sub(found.at) < replayFor {
		return *found, false
	}
	for len(s.order) >= maxReplays {
		delete(s.known, s.order[0])
		s.order = s.order[1:]
	}
	s.known[key] = &replay{body: body, at: now}
	s.order = append(s.order, key)
	return replay{}, true
}

// end remembers the answer. One that may be another the next time is forgotten.
func (s *replays) end(key replayKey, kept *keptWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.known[key]
	if found == nil {
		return
	}
	if !kept.wrote || kept.status >= http.StatusInternalServerError {
		delete(s.known, key)
		return
	}
	found.status, found.header, found.answer = kept.status, maps.Clone(kept.Header()), kept.body.Bytes()
}

// write answers a request that came before.
func (a replay) write(w http.ResponseWriter, body [sha256.Size]byte) {
	switch {
	case a.body != body:
		writeProblem(w, problem{Status: http.StatusUnprocessableEntity, Detail: "The Idempotency-Key was used for another body: make a new one for each request."})
	case a.header == nil:
		w.Header().Set("Retry-After", "1")
		writeProblem(w, problem{Status: http.StatusConflict, Detail: "A request with this Idempotency-Key is under way."})
	default:
		maps.Copy(w.Header(), a.header)
		w.Header().Set("Idempotency-Replayed", "true")
		w.WriteHeader(a.status)
		_, _ = w.Write(a.answer) // fails when the client is gone
	}
}

// keptWriter keeps a copy of the answer.
type keptWriter struct {
	http.ResponseWriter
	wrote  bool
	status int
	body   bytes.Buffer
}

func (w *keptWriter) WriteHeader(status int) {
	w.status, w.wrote = status, true
	w.ResponseWriter.WriteHeader(status)
}

func (w *keptWriter) Write(text []byte) (int, error) {
	w.wrote = true
	w.body.Write(text)
	return w.ResponseWriter.Write(text)
}
