// Package identity tells who is calling: by API key, verified token, a trusted proxy's word, or the client's address. The
// first source that applies wins; a missing or invalid one falls through to the next, and the address is always there.
package identity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/identity/edge"
)

// Resolver finds out who is calling. It is safe for concurrent use.
type Resolver struct {
	edge       *edge.Edge
	sources    []source
	tokens     *tokens // nil: no issuer is believed
	attributes []attribute
	log        *slog.Logger
}

// source is one way to know a caller. It reports false when it does not apply.
type source interface {
	subject(ctx context.Context, peer netip.Addr, h http.Header) (sluice.Subject, bool)
}

// KeyVerifier knows API keys.
type KeyVerifier interface {
	// Verify returns whom a key belongs to. It is asked with whatever clients send, on the request's path, so it must not
	// block and must take the same time for keys that exist and keys that do not.
	Verify(ctx context.Context, key string) (sluice.Subject, bool)
}

// Options tune a Resolver. The zero value works.
type Options struct {
	// Log is told when an issuer's keys cannot be had, and when they can again. Default: nobody.
	Log *slog.Logger
	// Client fetches keys; its redirects are restricted. Default: one of our own, with a timeout of 5s.
	Client *http.Client
	// Keys knows API keys. Default: nobody does, and that source never applies.
	Keys KeyVerifier
	// Now is the clock that tokens are checked by. Default time.Now.
	Now func() time.Time
}

// New checks the configuration and returns a resolver, or all faults. It reads the issuers' key files and fetches nothing:
// until Run has fetched the keys of an issuer, its tokens do not apply.
func New(cfg config.Identity, opts Options) (*Resolver, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if cfg.APIKeyHeader == "" {
		cfg.APIKeyHeader = "X-API-Key"
	}
	var faults []error
	r := &Resolver{log: opts.Log, attributes: newAttributes(cfg.Attributes)}
	var err error
	if r.edge, err = newEdge(cfg); err != nil {
		faults = append(faults, err)
	}
	if r.tokens, err = newTokens(cfg.JWT, opts); err != nil {
		faults = append(faults, err)
	}
	if r.sources, err = r.order(cfg, opts); err != nil {
		faults = append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	return r, nil
}

func newEdge(cfg config.Identity) (*edge.Edge, error) {
	o := edge.Options{Trusted: cfg.TrustedProxies, Depth: cfg.TrustedDepth, Header: cfg.Forwarded, IPv6Prefix: cfg.IPv6Prefix}
	for _, name := range []string{cfg.Headers.User, cfg.Headers.Tenant, cfg.Headers.Tier} {
		if name != "" {
			o.Identity = append(o.Identity, name)
		}
	}
	e, err := edge.New(o)
	if cfg.ProxyProtocol && len(cfg.TrustedProxies) == 0 {
		err = errors.Join(err, errors.New("proxy_protocol: it is read from trusted_proxies only, and there are none: list the balancers that send it"))
	}
	return e, err
}

// order lists the sources that can apply, in the configured order.
func (r *Resolver) order(cfg config.Identity, opts Options) ([]source, error) {
	order := cfg.Order
	if order == nil {
		order = []string{"api_key", "jwt", "header"}
	}
	var sources []source
	var faults []error
	for i, name := range order {
		if slices.Contains(order[:i], name) {
			faults = append(faults, fmt.Errorf("order: %q is listed twice", name))
		}
		switch name {
		case "api_key":
			if opts.Keys != nil {
				sources = append(sources, apiKeys{opts.Keys, http.CanonicalHeaderKey(cfg.APIKeyHeader)})
			}
		case "jwt":
			if r.tokens != nil {
				sources = append(sources, r.tokens)
			}
		case "header":
			if cfg.Headers != (config.IdentityHeaders{}) {
				sources = append(sources, newProxyFields(r.edge, cfg.Headers))
			}
		default:
			faults = append(faults, fmt.Errorf(`order: %q is not a source: choose of "api_key", "jwt", "header"`, name))
		}
	}
	return sources, errors.Join(faults...)
}

// Run keeps the issuers' keys current until ctx ends. It always returns nil.
func (r *Resolver) Run(ctx context.Context) error {
	if r.tokens == nil {
		<-ctx.Done()
		return nil
	}
	r.tokens.run(ctx)
	return nil
}

// Inherit takes over the keys that another resolver has from the same issuers, so that a change of the configuration
// does not begin by knowing nobody. It is called before Run.
func (r *Resolver) Inherit(old *Resolver) {
	if r.tokens == nil || old == nil || old.tokens == nil {
		return
	}
	for _, i := range r.tokens.issuers {
		for _, before := range old.tokens.issuers {
			i.keys.inherit(before.keys)
		}
	}
}

// Keys tells how the keys of each issuer were had last, in the configured order.
func (r *Resolver) Keys() []KeyStatus {
	if r.tokens == nil {
		return nil
	}
	all := make([]KeyStatus, len(r.tokens.issuers))
	for n, i := range r.tokens.issuers {
		all[n] = *i.keys.status.Load()
	}
	return all
}

// Subject tells who sent a request, by the address of its socket and its header. It never fails: without anything else
// the caller is its address, and Subject.IP is always set.
func (r *Resolver) Subject(ctx context.Context, peer netip.Addr, h http.Header) sluice.Subject {
	ip := r.edge.Client(peer, h)
	for _, s := range r.sources {
		if subject, ok := s.subject(ctx, peer, h); ok {
			subject.IP = ip
			return subject
		}
	}
	return sluice.Subject{IP: ip}
}

// Trusted tells whether a peer's word about its client is taken.
func (r *Resolver) Trusted(peer netip.Addr) bool { return r.edge.Trusted(peer) }

// Strip takes out of h what an upstream might believe and nobody vouches for: identity fields and X-Forwarded-* that the
// peer may not set, and every alias of such a name that careless servers take for it.
func (r *Resolver) Strip(peer netip.Addr, h http.Header) { r.edge.StripFrom(peer, h) }

// Peer returns the address of a request's socket, invalid when it has none.
func Peer(req *http.Request) netip.Addr {
	p, err := netip.ParseAddrPort(req.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return p.Addr()
}
