package identity

import (
	"context"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/identity/edge"
)

// proxyFields is the source "header": what a trusted proxy tells about the caller. Names are canonical, or empty.
type proxyFields struct {
	edge               *edge.Edge
	user, tenant, tier string
}

func newProxyFields(e *edge.Edge, names config.IdentityHeaders) proxyFields {
	return proxyFields{e, http.CanonicalHeaderKey(names.User), http.CanonicalHeaderKey(names.Tenant), http.CanonicalHeaderKey(names.Tier)}
}

// subject does not apply when one of the fields is ambiguous, even if the others are fine: half an identity would be
// counted for somebody else.
func (p proxyFields) subject(_ context.Context, peer netip.Addr, h http.Header) (s sluice.Subject, ok bool) {
	if !p.edge.Trusted(peer) {
		return s, false
	}
	user, userOK := edge.Field(h, p.user)
	tenant, tenantOK := edge.Field(h, p.tenant)
	tier, tierOK := edge.Field(h, p.tier)
	if !userOK || !tenantOK || !tierOK || user == "" && tenant == "" && tier == "" {
		return s, false
	}
	return sluice.Subject{User: user, Tenant: tenant, Tier: tier}, true
}

// apiKeys is the source "api_key".
type apiKeys struct {
	keys   KeyVerifier
	header string
}

// maxKeyLength bounds what is handed to the verifier. Our keys have about 80 characters.
const maxKeyLength = 512

func (a apiKeys) subject(ctx context.Context, _ netip.Addr, h http.Header) (sluice.Subject, bool) {
	if key, ok := single(h, a.header); ok && len(key) <= maxKeyLength {
		if s, ok := a.keys.Verify(ctx, key); ok {
			return s, true
		}
	}
	if key, ok := bearer(h); ok && len(key) <= maxKeyLength {
		return a.keys.Verify(ctx, key)
	}
	return sluice.Subject{}, false
}

// single returns the value of a field that is sent once. Of two, nobody knows which one others would take.
func single(h http.Header, name string) (string, bool) {
	values := h[name]
	if len(values) != 1 || values[0] == "" {
		return "", false
	}
	return values[0], true
}

// bearer returns the credentials of Authorization: Bearer.
func bearer(h http.Header) (string, bool) {
	value, ok := single(h, "Authorization")
	if !ok {
		return "", false
	}
	return cutBearer(value)
}

func cutBearer(value string) (string, bool) {
	const scheme = "Bearer "
	if len(value) <= len(scheme) || !strings.EqualFold(value[:len(scheme)], scheme) {
		return "", false
	}
	value = strings.TrimLeft(value[len(scheme):], " ")
	return value, value != ""
}

// attribute takes a header field as an attribute.
type attribute struct{ name, field string }

// maxAttributeLength is cut to, because every value may become a counter's name; rules have no use for longer ones.
const maxAttributeLength = 1024

func newAttributes(fields map[string]string) []attribute {
	var all []attribute
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		all = append(all, attribute{name, http.CanonicalHeaderKey(fields[name])})
	}
	return all
}

// Attributes returns the header fields that the configuration takes as attributes, as the client sent them: nobody
// vouches for them. Of several values it is the first. It returns nil when there are none.
func (r *Resolver) Attributes(h http.Header) map[string]string {
	var found map[string]string
	for _, a := range r.attributes {
		values := h[a.field]
		if len(values) == 0 || values[0] == "" {
			continue
		}
		if found == nil {
			found = make(map[string]string, len(r.attributes))
		}
		found[a.name] = values[0][:min(len(values[0]), maxAttributeLength)]
	}
	return found
}
