package ruledoc

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/sluicehq/sluice"
)

// fieldError is what is wrong with one field of an entry.
type fieldError struct {
	field string
	err   error
}

// joinFields makes one error of those of several fields.
func joinFields(faults []fieldError) error {
	errs := make([]error, len(faults))
	for i, f := range faults {
		errs[i] = fmt.Errorf("%s: %w", f.field, f.err)
	}
	return errors.Join(errs...)
}

// ToRule returns the rule that is written here. It reports what cannot be read at all, every fault at once; whether the
// rule makes sense is for sluice.Compile to say.
func (r Rule) ToRule() (sluice.Rule, error) {
	rule, faults := r.convert()
	return rule, joinFields(faults)
}

func (r Rule) convert() (sluice.Rule, []fieldError) {
	var faults []fieldError
	note := func(field string, err error) {
		if err != nil {
			faults = append(faults, fieldError{field, err})
		}
	}
	rule := sluice.Rule{
		Namespace: r.Namespace, Name: r.Name, Priority: r.Priority, Layer: r.Layer, MaxDelay: r.MaxDelay.Std(), Label: r.Label, Cost: r.Cost,
		Match:    sluice.Match{Tenants: slices.Clone(r.Match.Tenants), Users: slices.Clone(r.Match.Users), APIKeys: slices.Clone(r.Match.APIKeys)},
		Response: sluice.Response{Status: r.Response.Status, Message: r.Response.Message, RetryAfter: r.Response.RetryAfter.Std()},
		Disabled: r.Enabled != nil && !*r.Enabled,
	}
	rule.Match.Tiers, rule.Match.Routes = slices.Clone(r.Match.Tiers), slices.Clone(r.Match.Routes)
	rule.Match.Methods, rule.Match.Attributes = slices.Clone(r.Match.Methods), maps.Clone(r.Match.Attributes)
	for i, text := range r.Match.CIDRs {
		p, err := ParseCIDR(text)
		note(fmt.Sprintf("match.cidrs[%d]", i), err)
		rule.Match.CIDRs = append(rule.Match.CIDRs, p)
	}
	for _, d := range r.Key {
		rule.Key = append(rule.Key, sluice.Dimension(d))
	}
	limits, limitFaults := toLimits(r.Limits)
	rule.Limits, faults = limits, append(faults, limitFaults...)
	note("action", rule.Action.UnmarshalText([]byte(r.Action)))
	note("on_store_error", rule.OnStoreError.UnmarshalText([]byte(r.OnStoreError)))
	note("mode", checkMode(r.Mode))
	return rule, faults
}

func checkMode(mode string) error {
	switch mode {
	case "", "exact":
		return nil
	case "leased", "auto":
		return fmt.Errorf("%q is not available yet: write \"exact\", or leave it out", mode)
	default:
		return unknown("mode", mode, []string{"exact"})
	}
}

func toLimits(written []Limit) (limits []sluice.Limit, faults []fieldError) {
	for i, l := range written {
		limit := sluice.Limit{Limit: l.Limit, Window: l.Window.Std(), Burst: l.Burst}
		if err := limit.Algorithm.UnmarshalText([]byte(l.Algorithm)); err != nil {
			faults = append(faults, fieldError{fmt.Sprintf("limits[%d].algorithm", i), err})
		}
		limits = append(limits, limit)
	}
	return limits, faults
}

// ToLimits returns the limits of an override, and every fault of them at once.
func (o Override) ToLimits() ([]sluice.Limit, error) {
	limits, faults := o.convert()
	return limits, joinFields(faults)
}

func (o Override) convert() ([]sluice.Limit, []fieldError) {
	limits, faults := toLimits(o.Limits)
	if len(faults) > 0 {
		return limits, faults
	}
	for i, l := range limits {
		if err := l.Validate(); err != nil {
			faults = append(faults, fieldError{fmt.Sprintf("limits[%d]", i), err})
		}
		if j := slices.IndexFunc(limits[:i], func(m sluice.Limit) bool { return m.Algorithm == l.Algorithm && m.Window == l.Window }); j >= 0 {
			faults = append(faults, fieldError{fmt.Sprintf("limits[%d]", i), fmt.Errorf("limits[%d] is a %s over %s, too: they would share a counter", j, l.Algorithm, l.Window)})
		}
	}
	return limits, faults
}

// ParseCIDR reads a network or a single address. Bits beyond the network's length are refused: one cannot tell whether
// the address or the length was meant.
func ParseCIDR(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, fmt.Errorf("%q is neither an address nor a network: write it as 203.0.113.7, 10.0.0.0/8 or 2001:db8::/32", shorten(text))
	}
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	if p != p.Masked() {
		return p, fmt.Errorf("%q has bits beyond its length: write %s for the network, or %s for the address", text, p.Masked(), p.Addr())
	}
	return p, nil
}

// FromRule returns the written form of a rule. What is equal to the default is left out.
func FromRule(r sluice.Rule) Rule {
	w := Rule{
		Namespace: omit(r.Namespace, sluice.DefaultNamespace), Name: r.Name, Priority: omit(r.Priority, sluice.DefaultPriority), Layer: r.Layer,
		MaxDelay: Duration(r.MaxDelay), Label: omit(r.Label, r.Layer), Cost: omit(r.Cost, 1),
		Match: Match{
			Tenants: slices.Clone(r.Match.Tenants), Users: slices.Clone(r.Match.Users), APIKeys: slices.Clone(r.Match.APIKeys),
			Tiers: slices.Clone(r.Match.Tiers), Routes: slices.Clone(r.Match.Routes), Methods: slices.Clone(r.Match.Methods),
			Attributes: maps.Clone(r.Match.Attributes),
		},
		Response: Response{Status: omit(r.Response.Status, sluice.DefaultStatus), Message: r.Response.Message, RetryAfter: Duration(r.Response.RetryAfter)},
	}
	for _, p := range r.Match.CIDRs {
		w.Match.CIDRs = append(w.Match.CIDRs, writeCIDR(p))
	}
	for _, d := range r.Key {
		w.Key = append(w.Key, string(d))
	}
	for _, l := range r.Limits {
		w.Limits = append(w.Limits, FromLimit(l))
	}
	if r.Action != sluice.Reject {
		w.Action = r.Action.String()
	}
	if r.OnStoreError != sluice.FallLocal {
		w.OnStoreError = r.OnStoreError.String()
	}
	if r.Disabled {
		w.Enabled = new(bool)
	}
	return w
}

// FromLimit returns the written form of a limit.
func FromLimit(l sluice.Limit) Limit {
	return Limit{Algorithm: l.Algorithm.String(), Limit: l.Limit, Window: Duration(l.Window), Burst: l.Burst}
}

func writeCIDR(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.Masked().String()
}

// omit returns zero for a value that is the default.
func omit[T comparable](value, byDefault T) T {
	if value == byDefault {
		var zero T
		return zero
	}
	return value
}
