package adminhttp

import (
	"cmp"
	"net/http"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/adminauth"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

// Status is what a node tells of itself. Whoever puts the node together fills it.
type Status struct {
	Version string    `json:"version"`
	Node    string    `json:"node"`
	Started time.Time `json:"started"`
	// Uptime is filled by the door.
	Uptime int64 `json:"uptime_seconds"`
	// Enabled false: everything passes.
	Enabled bool `json:"enabled"`
	// Ready and Checks are filled by the door.
	Ready  bool          `json:"ready"`
	Checks []StatusCheck `json:"checks"`

	Rules RulesStatus `json:"rules"`
	Store StoreStatus `json:"store"`

	// Nodes is how many are alive.
	Nodes int `json:"nodes"`
	// InFlight is how many questions are under way, Overloaded how many were turned away.
	InFlight   int   `json:"in_flight"`
	Overloaded int64 `json:"overloaded"`
	// RestartNeeded names settings that changed and wait for a restart.
	RestartNeeded []string `json:"restart_needed,omitempty"`
	// ConfigFault is why the configuration was not taken when it last changed; empty when it was.
	ConfigFault string `json:"config_fault,omitempty"`
}

// StatusCheck is a Check in a Status.
type StatusCheck struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Detail string `json:"detail,omitempty"`
}

// RulesStatus tells of the rules.
type RulesStatus struct {
	// Revision and Count are filled by the door.
	Revision sluice.Revision `json:"revision"`
	Count    int             `json:"count"`
	// Loaded is when the rules in force were read.
	Loaded time.Time `json:"loaded,omitzero"`
	// Faults are those of the last reading, warnings included.
	Faults []RuleFault `json:"faults,omitempty"`
}

// RuleFault is something wrong with what was written, and where.
type RuleFault struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Entry   string `json:"entry,omitempty"`
	Field   string `json:"field,omitempty"`
	Warning bool   `json:"warning,omitempty"`
	Detail  string `json:"detail"`
}

// RuleFaults are faults in the form of a Status.
func RuleFaults(faults []ruledoc.Fault) []RuleFault {
	var list []RuleFault
	for _, f := range faults {
		list = append(list, RuleFault{File: f.File, Line: f.Line, Column: f.Column, Entry: f.Entry, Field: f.Field, Warning: f.Warning, Detail: f.Err.Error()})
	}
	return list
}

// StoreStatus tells of the counter store.
type StoreStatus struct {
	// Kind is such as "redis", "redis cluster" or "memory".
	Kind string `json:"kind"`
	// DegradedSince is when decisions began to be made without the store; absent when they are exact.
	DegradedSince time.Time `json:"degraded_since,omitzero"`
	// BreakersOpen names the shards that are not asked.
	BreakersOpen []string `json:"breakers_open,omitempty"`
	LastError    string   `json:"last_error,omitempty"`
}

func (h *handler) status(w http.ResponseWriter, _ *http.Request) {
	s := h.opts.Status()
	s.Uptime = int64(time.Since(s.Started) / time.Second)
	rules := h.opts.Rules()
	s.Rules.Revision, s.Rules.Count = rules.Revision(), rules.Len()
	var checks []Check
	s.Ready, checks = h.opts.Health.Ready()
	s.Checks = nil
	for _, c := range checks {
		s.Checks = append(s.Checks, StatusCheck{c.Name, c.State.String(), c.Detail})
	}
	writeJSON(w, s)
}

// rules shows the rules in force that the actor may see, as they could be written, defaults left out. ?namespace= shows one only.
func (h *handler) rules(w http.ResponseWriter, r *http.Request) {
	set, actor := h.opts.Rules(), adminauth.ActorOf(r.Context())
	only := r.URL.Query().Get("namespace")
	answer := struct {
		Revision sluice.Revision `json:"revision"`
		Rules    []ruledoc.Rule  `json:"rules"`
	}{set.Revision(), []ruledoc.Rule{}}
	for rule := range set.Rules() {
		if cmp.Or(only, rule.Namespace) == rule.Namespace && adminauth.May(actor, registry.Viewer, rule.Namespace) {
			answer.Rules = append(answer.Rules, ruledoc.FromRule(*rule))
		}
	}
	writeJSON(w, answer)
}
