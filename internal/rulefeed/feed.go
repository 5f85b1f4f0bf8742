package rulefeed

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

// Rules are what a node goes by.
type Rules struct {
	// Set is compiled, with its revision.
	Set *sluice.RuleSet
	// Document has everything that was written and is usable, for the directory. It must not be changed.
	Document ruledoc.Document
}

// Feed keeps rules current. Load and Run are for one goroutine; Status is for any.
//
// What it does with faults: a text that cannot be understood as a whole (syntax, an unknown section, a file that cannot be read)
// refuses the whole load, since nobody can tell what it would have said, and the last good rules go on. A faulty entry in a
// text that can be understood is left out alone; a rule that was in force before goes on in its last good form. Where rules
// are kept in several places (Joined), the first holds for each place alone.
type Feed struct {
	source  Source
	publish func(Rules)
	opts    Options
	status  atomic.Pointer[Status]

	// What the goroutine of Load and Run knows.
	inForce   *sluice.RuleSet // nil before the first load
	good      Status          // as it was when inForce was taken over
	digest    string          // of what is in force
	attempted string          // of what was looked at last
	told      []string        // digests of what was refused of places, as the log has it
}

// Options tune a Feed. The zero value works.
type Options struct {
	// Log is told of every load. Default: nobody is.
	Log *slog.Logger
	// Observe is told the status after every load that found something new, for metrics. Default: nobody is.
	Observe func(Status)
	// Now is the clock of the status. Default time.Now.
	Now func() time.Time
}

// New returns a feed. Rules are handed to publish, one after the other, on the goroutine that calls Load or Run.
func New(source Source, publish func(Rules), opts Options) *Feed {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Observe == nil {
		opts.Observe = func(Status) {}
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	f := &Feed{source: source, publish: publish, opts: opts}
	f.status.Store(&Status{})
	return f
}

// LoadError tells why rules were not taken over, with every fault that was found.
type LoadError struct {
	Faults []ruledoc.Fault
}

// Error lists the faults, one in each line, with the lines they speak of.
func (e *LoadError) Error() string {
	text := "the rules cannot be loaded:"
	for _, f := range e.Faults {
		text += "\n" + f.Quote()
	}
	return text
}

// Load takes over what the source has now. It returns an error when that cannot be read or understood; the rules in force
// stay then. A node that has none yet should not start. Single faulty entries, and one of several places that goes on with its
// last good texts, are no error: they are in the Status.
func (f *Feed) Load(ctx context.Context) error {
	snap, err := f.source.Snapshot(ctx)
	if err != nil {
		if ctx.Err() == nil {
			f.refused(err, nil)
			f.attempted = ""
		}
		return err
	}
	r := snap.read()
	before := f.attempted
	f.attempted = r.digest
	switch {
	case f.inForce != nil && r.digest == f.digest: // unchanged, or changed back
		f.restored(r)
		return nil
	case r.broken == 0:
		f.take(r)
		return nil
	}
	broken := &LoadError{ruledoc.Cap(r.faults)}
	if r.digest != before { // else it is as broken as before, which was told
		f.refused(r.refusal().err, broken.Faults)
	}
	return broken
}

// take compiles and publishes what was read.
func (f *Feed) take(r reading) {
	merged, found := ruledoc.Merge(r.parts...)
	faults := append(r.faults, found...)
	set, held, found := merged.Compile(f.inForce)
	faults = append(faults, found...)
	f.inForce, f.digest = set.WithRevision(max(r.revision, f.Status().Revision+1)), r.digest
	f.publish(Rules{Set: f.inForce, Document: merged.Document})
	f.accepted(r, merged, held, faults)
}

// retryWait is how long Run waits when the source cannot tell of changes. A shorter wait would be noise in the log,
// a longer one would keep old rules.
const retryWait = 5 * time.Second

// Run loads the rules again each time they have changed, until ctx ends, whose error it returns. Without a Load before, it
// loads first, and returns when that does not succeed.
func (f *Feed) Run(ctx context.Context) error {
	if f.inForce == nil {
		if err := f.Load(ctx); err != nil {
			return err
		}
	}
	for {
		err := f.source.Wait(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			f.opts.Log.Warn("cannot tell when rules change; looking again", "error", err, "after", retryWait)
			if err := sleep(ctx, retryWait); err != nil {
				return err
			}
		}
		if err := f.Load(ctx); err != nil {
			if broken := (*LoadError)(nil); errors.As(err, &broken) {
				continue // nothing to do until they change
			}
			// Read errors pass, and their end is no change of content.
			if err := sleep(ctx, retryWait); err != nil {
				return err
			}
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
