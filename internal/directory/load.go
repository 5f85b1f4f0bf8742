package directory

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/registry"
	"github.com/sluicehq/sluice/internal/ruledoc"
)

// apiKeyOnRecord is what an API key is compared with.
type apiKeyOnRecord struct {
	owner, tenant string
	expires       time.Time // zero: never
	oldUntil      time.Time // until when the second hash counts
	revoked       bool
	hashes        [][]byte
}

// valid returns the hashes that count at a time.
func (k *apiKeyOnRecord) valid(now time.Time) [][]byte {
	switch {
	case k == nil || k.revoked || !k.expires.IsZero() && !now.Before(k.expires):
		return nil
	case len(k.hashes) > 1 && !now.Before(k.oldUntil):
		return k.hashes[:1]
	}
	return k.hashes
}

// nobody is the record of everyone about whom nothing is on record.
var nobody = &record{}

// shelf makes records. Those that say nothing but a tier are the same one for all subjects on it.
type shelf struct {
	mu    sync.Mutex
	tiers map[string]*record
}

// maxShared bounds the tiers that have a record of their own; beyond, subjects of others take a little more memory.
const maxShared = 10_000

// record translates what the database told. Overrides that cannot be understood are left out, each alone.
func (s *shelf) record(from registry.Record) *record {
	if !from.Found {
		return nobody
	}
	if !from.Exempt && from.Blocked == nil && from.Key == nil && len(from.Overrides) == 0 {
		return s.ofTier(from.Tier)
	}
	r := &record{tier: from.Tier, exempt: from.Exempt, block: from.Blocked}
	for _, o := range from.Overrides {
		written := ruledoc.Override{Rule: o.Rule, Limits: o.Limits}
		if limits, err := written.ToLimits(); err == nil && o.Rule != "" {
			r.override(cmp.Or(o.Namespace, sluice.DefaultNamespace), sluice.Override{Rule: o.Rule, Limits: limits}, span{o.ValidFrom, o.ValidUntil})
		}
	}
	if k := from.Key; k != nil {
		r.key = &apiKeyOnRecord{
			owner: k.Owner, tenant: k.Tenant, expires: k.ExpiresAt, oldUntil: k.OldUntil, revoked: !k.RevokedAt.IsZero(), hashes: k.Hashes,
		}
	}
	r.weigh()
	return r
}

func (s *shelf) ofTier(tier string) *record {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.tiers[tier]; r != nil {
		return r
	}
	r := &record{tier: tier}
	if len(s.tiers) < maxShared {
		if s.tiers == nil {
			s.tiers = map[string]*record{}
		}
		s.tiers[tier] = r
	} else {
		r.weigh()
	}
	return r
}

// override adds limits for one rule of a namespace.
func (r *record) override(namespace string, o sluice.Override, when span) {
	i := slices.IndexFunc(r.overrides, func(v overrides) bool { return v.namespace == namespace })
	if i < 0 {
		r.overrides = append(r.overrides, overrides{namespace: namespace})
		i = len(r.overrides) - 1
	}
	in := &r.overrides[i]
	in.list = append(in.list, o)
	in.spans = append(in.spans, when)
	in.timed = in.timed || when != span{}
}

// weigh estimates the bytes that the record takes, allocations' rounding included.
func (r *record) weigh() {
	w := 160 + len(r.tier)
	if r.block != nil {
		w += 64 + len(r.block.Reason)
	}
	for _, o := range r.overrides {
		w += 96 + len(o.namespace)
		for _, of := range o.list {
			w += 128 + len(of.Rule) + 96*len(of.Limits)
		}
	}
	if r.key != nil {
		w += 320 + len(r.key.owner) + len(r.key.tenant)
	}
	r.weight = w
}
