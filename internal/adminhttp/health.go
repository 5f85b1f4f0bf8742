package adminhttp

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// Health knows whether a node is fit to be sent requests. It is safe for concurrent use.
type Health struct {
	probes []Probe

	once     sync.Once
	draining chan struct{}
}

// Probe asks one part of the node. It must not block; its detail is shown to everyone.
type Probe struct {
	Name string
	Ask  func() (state State, detail string)
}

// State is what a probe finds.
type State uint8

// The states. Only Failing makes a node unready.
const (
	Passing State = iota
	// Degraded works worse than it should, and better here than on no node: a node that cannot reach Redis stays ready,
	// else all would leave at once.
	Degraded
	Failing
)

var stateNames = [...]string{"ok", "degraded", "failed"}

// String returns the state's name.
func (s State) String() string { return stateNames[s] }

// Check is what a probe found.
type Check struct {
	Name   string
	State  State
	Detail string
}

// NewHealth returns the health of a node with these parts. It is not draining.
func NewHealth(probes ...Probe) *Health {
	return &Health{probes: probes, draining: make(chan struct{})}
}

// SetDraining makes the node unready for good, so that balancers look away before it stops. It also ends streams.
func (h *Health) SetDraining() { h.once.Do(func() { close(h.draining) }) }

// Draining is closed by SetDraining.
func (h *Health) Draining() <-chan struct{} { return h.draining }

// Ready tells whether requests may be sent, and what each part says.
func (h *Health) Ready() (bool, []Check) {
	ready := true
	checks := make([]Check, 0, len(h.probes)+1)
	for _, p := range h.probes {
		state, detail := p.Ask()
		checks = append(checks, Check{p.Name, state, detail})
		ready = ready && state != Failing
	}
	select {
	case <-h.draining:
		return false, append(checks, Check{"draining", Failing, "the node is stopping"})
	default:
		return ready, append(checks, Check{"draining", Passing, ""})
	}
}

// live tells that the process answers, which is all that a restart could cure.
func (h *handler) live(w http.ResponseWriter, _ *http.Request) {
	writeText(w, http.StatusOK, "ok\n")
}

// ready answers balancers. ?verbose, also with a value, lists the checks.
func (h *handler) ready(w http.ResponseWriter, r *http.Request) {
	ready, checks := h.opts.Health.Ready()
	status, text := http.StatusOK, "ok\n"
	if !ready {
		status, text = http.StatusServiceUnavailable, "not ready\n"
	}
	if r.URL.Query().Has("verbose") {
		var b strings.Builder
		for _, c := range checks {
			fmt.Fprintf(&b, "[%c] %s: %s", "+~-"[c.State], c.Name, c.State)
			if c.Detail != "" {
				fmt.Fprintf(&b, ": %q", c.Detail)
			}
			b.WriteByte('\n')
		}
		text = b.String() + text
	}
	writeText(w, status, text)
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // fails when the client is gone
}
