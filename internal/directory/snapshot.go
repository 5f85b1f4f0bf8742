package directory

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/gaissmai/bart"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

// Snapshot is what is on record at one moment. It never changes, so it is safe for concurrent use. The zero value has
// nothing on record.
type Snapshot struct {
	apiKeys, users, tenants records
	networks                *bart.Table[*record]
	defaultTier             string
	size                    int // entries, the default tier included
}

// records are by the subject's name.
type records map[string]*record

// find returns what is on record about a name; the empty name is nobody's.
func (r records) find(name string) *record {
	if name == "" || len(r) == 0 {
		return nil
	}
	return r[name]
}

func (r records) of(name string) *record {
	found := r[name]
	if found == nil {
		found = &record{}
		r[name] = found
	}
	return found
}

// record is what is on record about one subject.
type record struct {
	tier      string
	exempt    bool
	block     *sluice.BlockedSubject // of several, the one that ends last
	overrides []overrides            // by namespace; few
	key       *apiKeyOnRecord        // of an API key; nil for others, and for those that are on record in files only
	weight    int                    // bytes, where no other subject shares the record
}

// overrides are those of one subject for the rules of one namespace. The list is handed out as it is when all of it is valid.
type overrides struct {
	namespace string
	list      []sluice.Override
	spans     []span // when each of list is valid
	timed     bool   // not all are always valid
}

// span is a time from and until which something is valid; zero times are no bounds.
type span struct{ from, until time.Time }

func (s span) contains(t time.Time) bool {
	return !t.Before(s.from) && (s.until.IsZero() || t.Before(s.until))
}

// address returns what is on record about an address: that of the narrowest network it is in, which has what is on record
// about the wider ones, too.
func (s *Snapshot) address(ip netip.Addr) *record {
	if s.networks == nil || !ip.IsValid() {
		return nil
	}
	found, _ := s.networks.Lookup(ip.Unmap())
	return found
}

// Len returns the number of subjects and networks on record.
func (s *Snapshot) Len() int {
	n := len(s.apiKeys) + len(s.users) + len(s.tenants)
	if s.networks != nil {
		n += s.networks.Size()
	}
	return n
}

// Build makes a snapshot of what is written. An entry with a fault is left out alone and reported. What has ended by now is left
// out, too; what has not begun is kept. The document is not changed.
func Build(doc ruledoc.Document, now time.Time) (*Snapshot, []ruledoc.Fault) {
	b := builder{
		snapshot: &Snapshot{apiKeys: records{}, users: records{}, tenants: records{}},
		networks: map[netip.Prefix]*record{},
	}
	for _, t := range doc.Tiers {
		b.tier(t)
	}
	for _, o := range doc.Overrides {
		b.override(o, now)
	}
	for _, e := range doc.Exemptions {
		if r := b.of(e.Who, "exemption"); r != nil {
			r.exempt = true
		}
	}
	for _, e := range doc.Blocks {
		b.block(e, now)
	}
	b.plant()
	s := b.snapshot
	s.size = s.Len()
	if s.defaultTier != "" {
		s.size++
	}
	return s, b.faults
}

type builder struct {
	snapshot *Snapshot
	networks map[netip.Prefix]*record
	faults   []ruledoc.Fault
}

func (b *builder) fault(entry string, err error) {
	b.faults = append(b.faults, ruledoc.Fault{Entry: entry, Err: err})
}

// of returns the record of a subject, nil when the entry does not name one.
func (b *builder) of(who ruledoc.Who, kind string) *record {
	if err := who.Check(); err != nil {
		b.fault(fmt.Sprintf("%s of %s", kind, who), err)
		return nil
	}
	switch {
	case who.APIKey != "":
		return b.snapshot.apiKeys.of(who.APIKey)
	case who.User != "":
		return b.snapshot.users.of(who.User)
	case who.Tenant != "":
		return b.snapshot.tenants.of(who.Tenant)
	}
	p, _ := ruledoc.ParseCIDR(who.CIDR) // checked above
	if b.networks[p] == nil {
		b.networks[p] = &record{}
	}
	return b.networks[p]
}

// tier puts its members on it. The first tier of a subject stays.
func (b *builder) tier(t ruledoc.Tier) {
	if err := t.Check(); err != nil {
		b.fault(fmt.Sprintf("tier %q", t.Name), err)
		return
	}
	if t.Default {
		b.snapshot.defaultTier = cmp.Or(b.snapshot.defaultTier, t.Name)
	}
	for _, members := range [...]struct {
		names []string
		in    records
	}{{t.APIKeys, b.snapshot.apiKeys}, {t.Users, b.snapshot.users}, {t.Tenants, b.snapshot.tenants}} {
		for _, name := range members.names {
			r := members.in.of(name)
			r.tier = cmp.Or(r.tier, t.Name)
		}
	}
}

func (b *builder) override(o ruledoc.Override, now time.Time) {
	if err := o.Check(); err != nil {
		b.fault(fmt.Sprintf("override of rule %q for %s", o.Rule, o.Who), err)
		return
	}
	when := span{o.ValidFrom, o.ValidUntil}
	if !when.until.IsZero() && !now.Before(when.until) {
		return
	}
	limits, _ := o.ToLimits() // checked above
	namespace := cmp.Or(o.Namespace, sluice.DefaultNamespace)
	b.of(o.Who, "override").override(namespace, sluice.Override{Rule: o.Rule, Limits: limits}, when)
}

func (b *builder) block(e ruledoc.Block, now time.Time) {
	if !e.Until.IsZero() && !now.Before(e.Until) {
		return
	}
	r := b.of(e.Who, "block")
	if r == nil {
		return
	}
	if block := (&sluice.BlockedSubject{Reason: e.Reason, Until: e.Until}); endsLater(block, r.block) {
		r.block = block
	}
}

// plant puts the networks into a table, the wider ones first, and lets each inherit from the one around it: a search finds
// only the narrowest.
func (b *builder) plant() {
	if len(b.networks) == 0 {
		return
	}
	prefixes := make([]netip.Prefix, 0, len(b.networks))
	for p := range b.networks {
		prefixes = append(prefixes, p)
	}
	slices.SortFunc(prefixes, func(p, q netip.Prefix) int { return cmp.Compare(p.Bits(), q.Bits()) })
	table := &bart.Table[*record]{}
	for _, p := range prefixes {
		r := b.networks[p]
		if around, found := table.LookupPrefix(p); found {
			r.exempt = r.exempt || around.exempt
			if around.block != nil && endsLater(around.block, r.block) {
				r.block = around.block
			}
		}
		table.Insert(p, r)
	}
	b.snapshot.networks = table
}
