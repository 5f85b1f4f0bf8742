package rulefeed

import (
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

// Status tells which rules a node goes by and what is wrong with those it was given. The zero value is that of a node that has
// not loaded any.
type Status struct {
	// Revision, Digest and LoadedAt are those of the rules in force. Nodes with the same digest go by the same rules.
	Revision sluice.Revision `json:"revision"`
	Digest   string          `json:"digest"`
	// Kept is the keeper's own number of what is in force. It is lower than Revision where that had to rise without it.
	Kept     sluice.Revision `json:"kept"`
	LoadedAt time.Time       `json:"loaded_at,omitzero"`
	// Rules is how many there are, disabled ones included; the others are entries for the directory.
	Rules      int `json:"rules"`
	Tiers      int `json:"tiers"`
	Overrides  int `json:"overrides"`
	Exemptions int `json:"exemptions"`
	Blocks     int `json:"blocks"`
	// Held names rules that go on in their last good form, because what is written now is faulty.
	Held []string `json:"held,omitempty"`
	// Faults are those of what was read last, taken over or not, as many as one would read.
	Faults []ruledoc.Fault `json:"faults,omitempty"`
	// Stale tells that what was read last was not taken over: older rules go on.
	Stale bool `json:"stale"`
	// LastError tells why a load was refused, and stays after a later one succeeded.
	LastError   string    `json:"last_error,omitempty"`
	LastErrorAt time.Time `json:"last_error_at,omitzero"`
}

// Status returns what the last load came to. Its slices must not be changed.
func (f *Feed) Status() Status { return *f.status.Load() }

// accepted records and logs rules that were taken over.
func (f *Feed) accepted(kept sluice.Revision, m *ruledoc.Merged, held []ruledoc.RuleName, faults []ruledoc.Fault) {
	s := f.Status()
	s.Revision, s.Digest, s.LoadedAt, s.Stale = f.inForce.Revision(), f.digest, f.opts.Now(), false
	s.Kept = kept
	s.Rules, s.Tiers, s.Overrides = f.inForce.Len(), len(m.Document.Tiers), len(m.Document.Overrides)
	s.Exemptions, s.Blocks = len(m.Document.Exemptions), len(m.Document.Blocks)
	s.Faults, s.Held = ruledoc.Cap(faults), nil
	for _, name := range held {
		s.Held = append(s.Held, name.Namespace+"/"+name.Name)
	}
	f.good = s
	f.status.Store(&s)

	log := f.opts.Log.With("revision", s.Revision)
	log.Info("rules loaded", "digest", s.Digest, "rules", s.Rules, "faults", len(faults))
	if s.Rules == 0 {
		log.Warn("there are no rules: every request is allowed")
	}
	for _, fault := range s.Faults {
		if fault.Warning {
			log.Warn("rules: " + fault.Error())
		} else {
			log.Error("left out: " + fault.Error())
		}
	}
	for _, name := range s.Held {
		log.Error("a faulty rule goes on in its last good form", "rule", name)
	}
	f.opts.Observe(s)
}

// refused records and logs a load that was not taken over. The same error is not told twice.
func (f *Feed) refused(err error, faults []ruledoc.Fault) {
	s := f.Status()
	again := s.Stale && s.LastError == err.Error() && faults == nil
	s.Stale, s.LastError, s.LastErrorAt, s.Faults = true, err.Error(), f.opts.Now(), faults
	f.status.Store(&s)
	if again {
		return
	}
	goesOn := fmt.Sprintf("revision %d goes on", s.Revision)
	if f.inForce == nil {
		goesOn = "there is none before it"
	}
	f.opts.Log.Error("rules not loaded: "+goesOn, "error", err)
	for _, fault := range faults {
		f.opts.Log.Error("rules: " + fault.Error())
	}
	f.opts.Observe(s)
}

// restored records that the rules in force are what is written, after something else was.
func (f *Feed) restored(kept sluice.Revision) {
	f.good.Kept = kept
	before, s := f.Status(), f.good
	if !before.Stale {
		before.Kept = kept
		f.status.Store(&before)
		return
	}
	s.LastError, s.LastErrorAt = before.LastError, before.LastErrorAt
	f.status.Store(&s)
	f.opts.Log.Info("rules are as they were", "revision", s.Revision)
	f.opts.Observe(s)
}
