// Package directory knows what is on record about subjects: their tier, their overrides, whether they are exempt or blocked.
package directory

import (
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
)

// Directory completes subjects by a Snapshot, which can be replaced while it is in use. It is safe for concurrent use.
type Directory struct {
	current atomic.Pointer[Snapshot]
	now     func() time.Time
}

// New returns a directory in which nothing is on record. Now is the clock for what ends; nil is time.Now.
func New(now func() time.Time) *Directory {
	if now == nil {
		now = time.Now
	}
	d := &Directory{now: now}
	d.current.Store(&Snapshot{})
	return d
}

// Set replaces everything that is on record.
func (d *Directory) Set(s *Snapshot) { d.current.Store(s) }

// Snapshot returns what is on record now.
func (d *Directory) Snapshot() *Snapshot { return d.current.Load() }

// Fill completes a subject: tier, overrides for rules of the namespace, block, exemption. What is set already stays; overrides
// on record come after it. It allocates nothing, unless overrides have to be put together from several places.
func (d *Directory) Fill(namespace string, subject *sluice.Subject) {
	d.fill(namespace, subject, [dimensions]*record{})
}

// fill is Fill with what another source has on record about the subject's names.
func (d *Directory) fill(namespace string, subject *sluice.Subject, more [dimensions]*record) {
	s := d.current.Load()
	if s.size == 0 && more == [dimensions]*record{} {
		return
	}
	found := [...]*record{ // the most specific first
		s.apiKeys.find(subject.APIKey), more[apiKey], s.users.find(subject.User), more[user], s.tenants.find(subject.Tenant), more[tenant],
		s.address(subject.IP),
	}
	f := filling{directory: d, subject: subject, namespace: namespace}
	if f.namespace == "" {
		f.namespace = sluice.DefaultNamespace
	}
	for _, r := range found {
		if r != nil {
			f.add(r)
		}
	}
	if subject.Tier == "" {
		subject.Tier = s.defaultTier
	}
}

// filling is one subject being completed. The clock is read once, and only where something on record begins or ends.
type filling struct {
	directory *Directory
	subject   *sluice.Subject
	namespace string
	now       time.Time
	blocked   *sluice.BlockedSubject
}

func (f *filling) time() time.Time {
	if f.now.IsZero() {
		f.now = f.directory.now()
	}
	return f.now
}

func (f *filling) add(r *record) {
	s := f.subject
	if s.Tier == "" {
		s.Tier = r.tier
	}
	s.Exempt = s.Exempt || r.exempt
	if r.block != nil && (s.Blocked == nil || s.Blocked == f.blocked) && endsLater(r.block, s.Blocked) {
		if r.block.Until.IsZero() || f.time().Before(r.block.Until) {
			s.Blocked, f.blocked = r.block, r.block
		}
	}
	for i := range r.overrides {
		if r.overrides[i].namespace == f.namespace {
			f.override(&r.overrides[i])
		}
	}
}

// endsLater tells whether a block outlasts another, which may be none.
func endsLater(a, b *sluice.BlockedSubject) bool {
	switch {
	case b == nil:
		return true
	case a.Until.IsZero() || b.Until.IsZero():
		return a.Until.IsZero() && !b.Until.IsZero()
	}
	return a.Until.After(b.Until)
}

// override adds what is valid now. The limiter goes by the first override of a rule, so the order is that of specificity.
func (f *filling) override(o *overrides) {
	list := o.list
	if o.timed {
		valid := 0
		for i := range o.spans {
			if o.spans[i].contains(f.time()) {
				valid++
			}
		}
		if valid < len(list) {
			list = make([]sluice.Override, 0, valid)
			for i := range o.spans {
				if o.spans[i].contains(f.time()) {
					list = append(list, o.list[i])
				}
			}
		}
	}
	switch {
	case len(list) == 0:
		return
	case len(f.subject.Overrides) == 0:
		f.subject.Overrides = list
		return
	}
	// A new slice: what is there may be the caller's, or shared by all requests of a subject.
	all := make([]sluice.Override, 0, len(f.subject.Overrides)+len(list))
	f.subject.Overrides = append(append(all, f.subject.Overrides...), list...)
}
