package ruledoc

import (
	"errors"
	"fmt"
	"strconv"
)

// Kind is a kind of entry in a Document.
type Kind uint8

// The kinds of entries.
const (
	RuleEntry Kind = iota
	TierEntry
	OverrideEntry
	ExemptionEntry
	BlockEntry
	kinds
)

// String returns the kind's name in TOML files.
func (k Kind) String() string {
	return [...]string{"rule", "tier", "override", "exemption", "block"}[k]
}

// entry is one of the things a document lists.
type entry interface {
	// title names the entry to people.
	title() string
	// check reports what is wrong with the entry by itself.
	check() []fieldError
}

func (r Rule) title() string { return titled("rule", r.Name) }

func (r Rule) check() []fieldError {
	_, faults := r.convert()
	return faults
}

func (t Tier) title() string { return titled("tier", t.Name) }

func (t Tier) check() []fieldError {
	var faults []fieldError
	if t.Name == "" {
		faults = append(faults, fieldError{"name", errors.New("a tier needs a name")})
	}
	for _, members := range [...]struct {
		field string
		names []string
	}{{"tenants", t.Tenants}, {"users", t.Users}, {"api_keys", t.APIKeys}} {
		for i, name := range members.names {
			if name == "" {
				faults = append(faults, fieldError{fmt.Sprintf("%s[%d]", members.field, i), errors.New("is empty: nobody is called so")})
			}
		}
	}
	return faults
}

func (o Override) title() string {
	return "override of " + titled("rule", o.Rule) + " for " + o.String()
}

func (o Override) check() []fieldError {
	faults := o.Who.check()
	if o.CIDR != "" {
		faults = append(faults, fieldError{"cidr", errors.New("an override is for a tenant, user or api_key; for addresses write a rule with match.cidrs and a lower priority number")})
	}
	if o.Rule == "" {
		faults = append(faults, fieldError{"rule", errors.New("an override names the rule whose limits it replaces")})
	}
	if len(o.Limits) == 0 {
		faults = append(faults, fieldError{"limits", errors.New("an override has limits; to let a subject pass everything write an exemption")})
	}
	if !o.ValidFrom.IsZero() && !o.ValidUntil.IsZero() && !o.ValidFrom.Before(o.ValidUntil) {
		faults = append(faults, fieldError{"valid_until", errors.New("is not after valid_from, so the override is never valid")})
	}
	_, limits := o.convert()
	return append(faults, limits...)
}

func (e Exemption) title() string       { return "exemption of " + e.String() }
func (e Exemption) check() []fieldError { return e.Who.check() }
func (b Block) title() string           { return "block of " + b.String() }
func (b Block) check() []fieldError     { return b.Who.check() }

// Check reports everything that is wrong with the override by itself, nil when nothing is.
func (o Override) Check() error { return joinFields(o.check()) }

// Check reports everything that is wrong with the tier by itself, nil when nothing is.
func (t Tier) Check() error { return joinFields(t.check()) }

// Check reports whether the subject is named by exactly one field, and well.
func (w Who) Check() error { return joinFields(w.check()) }

// String names the subject to people.
func (w Who) String() string {
	for _, f := range w.named() {
		return f.name + " " + strconv.Quote(shorten(f.value))
	}
	return "nobody"
}

func (w Who) check() []fieldError {
	named := w.named()
	if len(named) == 0 {
		return []fieldError{{"", errors.New("names nobody: write one of tenant, user, api_key, cidr")}}
	}
	var faults []fieldError
	for _, f := range named[1:] {
		faults = append(faults, fieldError{f.name, fmt.Errorf("%s is named already: write an entry for each subject", named[0].name)})
	}
	if w.CIDR != "" {
		if _, err := ParseCIDR(w.CIDR); err != nil {
			faults = append(faults, fieldError{"cidr", err})
		}
	}
	return faults
}

type namedField struct{ name, value string }

// named lists the fields that are set.
func (w Who) named() []namedField {
	var set []namedField
	for _, f := range [...]namedField{{"tenant", w.Tenant}, {"user", w.User}, {"api_key", w.APIKey}, {"cidr", w.CIDR}} {
		if f.value != "" {
			set = append(set, f)
		}
	}
	return set
}

func titled(kind, name string) string {
	if name == "" {
		return kind + " without a name"
	}
	return kind + " " + strconv.Quote(shorten(name))
}
