package rulefeed

import (
	"fmt"
	"slices"
	"strings"
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
	// Stale tells that what was read last was not taken over, or not from everywhere: older rules go on.
	Stale bool `json:"stale"`
	// LastError tells why a load was refused, and stays after a later one succeeded.
	LastError   string    `json:"last_error,omitempty"`
	LastErrorAt time.Time `json:"last_error_at,omitzero"`
}

// Status returns what the last load came to. Its slices must not be changed.
func (f *Feed) Status() Status { return *f.status.Load() }

// accepted records and logs rules that were taken over.
func (f *Feed) accepted(r reading, m *ruledoc.Merged, held []ruledoc.RuleName, faults []ruledoc.Fault) {
	s := f.Status()
	s.Revision, s.Digest, s.LoadedAt, s.Stale = f.inForce.Revision(), f.digest, f.opts.Now(), false
	s.Kept = r.revision
	s.Rules, s.Tiers, s.Overrides = f.inForce.Len(), len(m.Document.Tiers), len(m.Document.Overrides)
	s.Exemptions, s.Blocks = len(m.Document.Exemptions), len(m.Document.Blocks)
	s.Faults, s.Held = ruledoc.Cap(faults), nil
	for _, name := range held {
		s.Held = append(s.Held, name.Namespace+"/"+name.Name)
	}
	f.good = s
	s.hold(r.refused, f.opts.Now())
	f.status.Store(&s)

	log := f.opts.Log.With("revision", s.Revision)
	log.Info("rules loaded", "digest", s.Digest, "rules", s.Rules, "faults", len(faults))
	if s.Rules == 0 {
		log.Warn("there are no rules: every request is allowed")
	}
	for _, fault := range f.good.Faults {
		if fault.Warning {
			log.Warn("rules: " + fault.Error())
		} else {
			log.Error("left out: " + fault.Error())
		}
	}
	for _, name := range s.Held {
		log.Error("a faulty rule goes on in its last good form", "rule", name)
	}
	f.tell(r.refused)
	f.opts.Observe(s)
}

// hold adds why places go on with their last good texts, before what is to be said of those in force.
func (s *Status) hold(places []refusal, now time.Time) {
	if len(places) == 0 {
		return
	}
	var why []string
	var faults []ruledoc.Fault
	for _, p := range places {
		why, faults = append(why, p.err.Error()), append(faults, p.faults...)
		if len(p.faults) == 0 {
			faults = append(faults, ruledoc.Fault{Err: p.err})
		}
	}
	s.Stale, s.LastError, s.LastErrorAt = true, strings.Join(why, "; "), now
	s.Faults = ruledoc.Cap(append(faults, s.Faults...))
}

// tell logs why places go on with their last good texts. What was told is not told again; false: there is nothing else to say than before.
func (f *Feed) tell(places []refusal) bool {
	var digests []string
	for _, p := range places {
		digests = append(digests, p.digest)
		if slices.Contains(f.told, p.digest) {
			continue
		}
		f.opts.Log.Error("rules not loaded: the last good ones from there go on, changes from elsewhere act", "error", p.err)
		for _, fault := range ruledoc.Cap(p.faults) {
			f.opts.Log.Error("rules: " + fault.Error())
		}
	}
	isNew := !slices.Equal(f.told, digests)
	f.told = digests
	return isNew
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

// restored records that the rules in force are what is written, perhaps after something else was, or what goes on in its place.
func (f *Feed) restored(r reading) {
	f.good.Kept = r.revision
	before, s := f.Status(), f.good
	s.LastError, s.LastErrorAt = before.LastError, before.LastErrorAt
	s.hold(r.refused, f.opts.Now())
	f.status.Store(&s)
	isNew := f.tell(r.refused)
	if before.Stale && !s.Stale {
		f.opts.Log.Info("rules are as they were", "revision", s.Revision)
		isNew = true
	}
	if isNew {
		f.opts.Observe(s)
	}
}
