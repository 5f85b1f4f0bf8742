package app

import (
	"fmt"
	"time"

	"github.com/sluicehq/sluice/internal/adminhttp"
	"github.com/sluicehq/sluice/internal/config"
)

// status tells operators how the node is.
func (a *App) status() adminhttp.Status {
	cfg := &a.config.Load().Config
	feed := a.feed.Status()
	pending := a.pending.Load()
	s := adminhttp.Status{
		Version: a.opts.Version, Node: cfg.Node, Started: a.started, Enabled: cfg.Enabled,
		Rules:    adminhttp.RulesStatus{Loaded: feed.LoadedAt, Faults: adminhttp.RuleFaults(feed.Faults)},
		Store:    adminhttp.StoreStatus{Kind: "redis", DegradedSince: a.outages.Since(), BreakersOpen: a.outages.OpenBreakers()},
		Nodes:    a.counters.nodes(),
		InFlight: a.engine.InFlight(), Overloaded: a.engine.Overloaded(),
		RestartNeeded: pending.restart,
	}
	if cfg.Redis.URL == config.MemoryURL {
		s.Store.Kind = config.MemoryURL
	}
	if err := a.outages.LastError(); err != nil {
		s.Store.LastError = err.Error()
	}
	if pending.fault != nil {
		s.ConfigFault = pending.fault.Error()
	}
	return s
}

// probes are what health and status ask.
func (a *App) probes() []adminhttp.Probe {
	list := []adminhttp.Probe{{Name: "rules", Ask: a.rulesHealth}, {Name: "store", Ask: a.storeHealth}}
	if a.control != nil {
		list = append(list, adminhttp.Probe{Name: "database", Ask: a.databaseHealth})
	}
	return list
}

// rulesHealth fails only before the first rules, which a node whose database does not answer waits for.
func (a *App) rulesHealth() (adminhttp.State, string) {
	s := a.feed.Status()
	if s.LoadedAt.IsZero() {
		return adminhttp.Failing, "there are no rules yet: " + s.LastError
	}
	if s.Stale {
		return adminhttp.Degraded, "the last good rules are in force: " + s.LastError
	}
	if a.control != nil {
		if err := a.control.Trouble(); err != nil {
			return adminhttp.Degraded, "neither Redis nor the database tells of changes: the last rules known are in force"
		}
	}
	rules := a.limiter.Rules()
	return adminhttp.Passing, fmt.Sprintf("%d rules, revision %d", rules.Len(), rules.Revision())
}

// storeHealth never fails either: without Redis a node still answers, as each rule wants.
func (a *App) storeHealth() (adminhttp.State, string) {
	if since := a.outages.Since(); !since.IsZero() {
		return adminhttp.Degraded, "decisions are made without the counter store"
	}
	return adminhttp.Passing, ""
}

// databaseHealth never fails: decisions need no database. It tells what the node knows from asking for its own ends.
func (a *App) databaseHealth() (adminhttp.State, string) {
	contact := a.control.Database()
	switch {
	case !contact.Since.IsZero():
		return adminhttp.Degraded, fmt.Sprintf("has not answered since %s: the last rules known are in force, and nothing can be changed",
			contact.Since.UTC().Format(time.RFC3339))
	case contact.At.IsZero():
		return adminhttp.Passing, "not asked yet: another node tells of changes"
	}
	return adminhttp.Passing, fmt.Sprintf("answered %s ago, when it was last asked", time.Since(contact.At).Round(time.Second))
}

// databaseUp is databaseHealth as a number. A database that was not asked yet counts as up.
func (a *App) databaseUp() float64 {
	if a.control.Database().Since.IsZero() {
		return 1
	}
	return 0
}
