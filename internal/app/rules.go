package app

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/directory"
	"github.com/sluicehq/sluice/internal/rulefeed"
)

// newFeed keeps limiter, directory and metrics current.
func (a *App) newFeed(loaded *config.Loaded) *rulefeed.Feed {
	a.rules.files.Store(rulesOf(loaded))
	var source rulefeed.Source = &a.rules
	if a.control != nil {
		source = rulefeed.NewJoined(source, a.control)
	}
	return rulefeed.New(source, a.publish, rulefeed.Options{Log: a.log, Observe: func(s rulefeed.Status) {
		faults := 0
		for _, f := range s.Faults {
			if !f.Warning {
				faults++
			}
		}
		a.metrics.RulesFailed(faults)
	}})
}

// publish puts rules in force. Metrics come first, so that no decision by a new rule goes uncounted.
func (a *App) publish(rules rulefeed.Rules) {
	people, faults := directory.Build(rules.Document, time.Now())
	for _, f := range faults {
		a.log.Warn("rules", "fault", f.Error())
	}
	a.metrics.SetRules(rules.Set, 0) // the feed tells the faults afterwards
	a.directory.Set(people)
	a.limiter.SetRules(rules.Set)
}

// rulesOf reads the files that a configuration names.
func rulesOf(loaded *config.Loaded) *rulefeed.Files {
	return rulefeed.NewFiles(rulefeed.FilesOptions{Dir: loaded.Config.Rules.Dir, Embedded: loaded.Path})
}

// ruleFiles is a source whose files can be others after the configuration changed.
type ruleFiles struct {
	files atomic.Pointer[rulefeed.Files]
}

// Snapshot implements rulefeed.Source.
func (r *ruleFiles) Snapshot(ctx context.Context) (rulefeed.Snapshot, error) {
	return r.files.Load().Snapshot(ctx)
}

// Wait implements rulefeed.Source.
func (r *ruleFiles) Wait(ctx context.Context) error { return r.files.Load().Wait(ctx) }

// use reads other files from now on. Both are nudged: the feed may wait for the old ones, or be about to wait for the new.
func (r *ruleFiles) use(f *rulefeed.Files) {
	f.Nudge()
	r.files.Swap(f).Nudge()
}

// again reads the same files now.
func (r *ruleFiles) again() { r.files.Load().Nudge() }
