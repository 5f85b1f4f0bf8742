package engine

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sluicehq/sluice"
)

// The most that a question may bring. Larger ones are mistakes or attacks: all of it is hashed, matched and logged.
const (
	MaxBatch          = 1000
	MaxAttributes     = 32
	maxAttributeName  = 128  // bytes
	maxAttributeValue = 1024 // bytes
	maxIdentity       = 255  // characters, of tenant, user, api_key and tier
	maxRoute          = 1024 // bytes
	maxMethod         = 32   // bytes
)

// InvalidError lists everything that is wrong with a question. It wraps sluice.ErrInvalidRequest.
type InvalidError struct{ Faults []Fault }

// Fault is what is wrong with one field of a question, and what to do about it.
type Fault struct {
	// Path leads to the field by the names in the API: "subject", "ip".
	Path    []string
	Problem string
}

// Error names every fault.
func (e *InvalidError) Error() string {
	texts := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		texts[i] = f.Field() + ": " + f.Problem
	}
	return sluice.ErrInvalidRequest.Error() + ": " + strings.Join(texts, "; ")
}

// Unwrap returns sluice.ErrInvalidRequest.
func (e *InvalidError) Unwrap() error { return sluice.ErrInvalidRequest }

// FaultsOf returns the faults that an error lists; nil when it lists none.
func FaultsOf(err error) []Fault {
	var invalid *InvalidError
	if errors.As(err, &invalid) {
		return invalid.Faults
	}
	return nil
}

// Field returns the path with dots: "subject.ip", "requests[3].cost".
func (f Fault) Field() string {
	var b strings.Builder
	for i, name := range f.Path {
		switch _, err := strconv.Atoi(name); {
		case err == nil:
			b.WriteString("[" + name + "]")
		case i > 0:
			b.WriteString("." + name)
		default:
			b.WriteString(name)
		}
	}
	return b.String()
}

// Pointer returns the path as a JSON pointer within a document (RFC 6901): "#/subject/ip".
func (f Fault) Pointer() string {
	var b strings.Builder
	b.WriteString("#")
	for _, name := range f.Path {
		b.WriteString("/")
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	return b.String()
}

// Validate checks a question that came in through a door, and reads the client's address from its written form, which
// may be empty. The error is an *InvalidError.
func Validate(req *sluice.Request, ip string) (netip.Addr, error) {
	var v validation
	v.check("namespace", "", req.Namespace, sluice.MaxNameLength, sluice.MaxNameLength*utf8.UTFMax)
	s := &req.Subject
	v.identity("tenant", s.Tenant)
	v.identity("user", s.User)
	v.identity("api_key", s.APIKey)
	v.identity("tier", s.Tier)
	v.check("route", "", req.Route, maxRoute, maxRoute)
	v.check("method", "", req.Method, maxMethod, maxMethod)
	if req.Cost < 0 {
		v.fault(fmt.Sprintf("is %d: it must be at least 1, or 0 for the rule's cost", req.Cost), "cost")
	}
	v.attributes(req.Attributes)
	var addr netip.Addr
	if ip != "" {
		var err error
		if addr, err = netip.ParseAddr(ip); err != nil || !utf8.ValidString(ip) { // a zone may be any bytes
			v.fault(fmt.Sprintf("%q is not an address: write it without a port, such as 192.0.2.1 or 2001:db8::1", excerpt(ip)), "subject", "ip")
		}
	}
	if v.faults != nil {
		return netip.Addr{}, &InvalidError{v.faults}
	}
	return addr.Unmap().WithZone(""), nil
}

// validation gathers faults.
type validation struct{ faults []Fault }

func (v *validation) fault(problem string, path ...string) {
	v.faults = append(v.faults, Fault{path, problem})
}

func (v *validation) identity(field, value string) {
	v.check("subject", field, value, maxIdentity, maxIdentity*utf8.UTFMax)
}

// check takes the path as two names, the second empty for fields of the question itself, so that nothing is allocated
// for values without fault.
func (v *validation) check(field, inner, value string, characters, bytes int) {
	if len(value) <= characters && utf8.ValidString(value) {
		return
	}
	path := slices.DeleteFunc([]string{field, inner}, func(name string) bool { return name == "" })
	switch n := utf8.RuneCountInString(value); {
	case !utf8.ValidString(value):
		v.fault("is not UTF-8", path...)
	case characters == bytes:
		v.fault(fmt.Sprintf("has %d bytes: the most is %d", len(value), bytes), path...)
	case n > characters:
		v.fault(fmt.Sprintf("has %d characters: the most is %d", n, characters), path...)
	}
}

func (v *validation) attributes(attributes map[string]string) {
	if len(attributes) > MaxAttributes {
		v.fault(fmt.Sprintf("there are %d: the most is %d", len(attributes), MaxAttributes), "attributes")
		return
	}
	for name, value := range attributes {
		if name == "" || len(name) > maxAttributeName || !utf8.ValidString(name) {
			v.fault(fmt.Sprintf("the name %q must be UTF-8, of 1 to %d bytes", excerpt(name), maxAttributeName), "attributes")
			continue
		}
		v.check("attributes", name, value, maxAttributeValue, maxAttributeValue)
	}
	if len(v.faults) > 1 { // a map has no order, and the same question must get the same answer
		slices.SortStableFunc(v.faults, func(a, b Fault) int { return slices.Compare(a.Path, b.Path) })
	}
}

// excerpt shortens what a caller sent, for messages about it.
func excerpt(text string) string {
	const most = 64
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
