package control

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/registry"
)

// Contact is what a node learned of the database when it last asked. A node that follows what another relays asks rarely, so this may be old
// where all is well. Where it is not, the node asks again every few seconds.
type Contact struct {
	// At is when the database last answered; zero: it never did.
	At time.Time
	// Since is when it ceased to answer; zero: it did when it was last asked, or was never asked.
	Since time.Time
}

// Database tells of the last contact. It asks nobody.
func (p *Plane) Database() Contact { return p.db.last() }

// noted is a database that remembers whether it answers. Listening is not counted: it may go another way, and looking makes up for it.
type noted struct {
	Database
	tell func(Contact, error) // when it ceased to answer, with the cause, and when it answers again

	mu      sync.Mutex
	contact Contact
}

func (n *noted) last() Contact {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.contact
}

// away tells that the database did not answer when it was last asked.
func (n *noted) away() bool { return !n.last().Since.IsZero() }

// note remembers how a question ended, and returns it. One that was called off says nothing.
func (n *noted) note(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	n.mu.Lock()
	before := n.contact
	switch {
	case err == nil:
		n.contact = Contact{At: time.Now()}
	case before.Since.IsZero():
		n.contact.Since = time.Now()
	}
	now := n.contact
	n.mu.Unlock()
	if before.Since.IsZero() != now.Since.IsZero() {
		n.tell(before, err)
	}
	return err
}

// Snapshot implements Database.
func (n *noted) Snapshot(ctx context.Context) (registry.Snapshot, error) {
	snap, err := n.Database.Snapshot(ctx)
	return snap, n.note(err)
}

// Revision implements Database.
func (n *noted) Revision(ctx context.Context) (sluice.Revision, error) {
	revision, err := n.Database.Revision(ctx)
	return revision, n.note(err)
}

// Heartbeat implements Database.
func (n *noted) Heartbeat(ctx context.Context, nodes []registry.Node) error {
	return n.note(n.Database.Heartbeat(ctx, nodes))
}

// tellContact writes to the log that the database went away, or is back.
func (p *Plane) tellContact(before Contact, err error) {
	if err != nil {
		p.opts.Log.Warn("the database does not answer: the rules in force go on, and operators can change nothing", "error", err)
		return
	}
	p.opts.Log.Info("the database answers again", "away_since", before.Since.UTC().Format(time.RFC3339))
}
