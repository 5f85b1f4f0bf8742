package identity

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/config"
)

// tokens is the source "jwt": tokens signed by an issuer that is believed.
type tokens struct {
	issuers []*issuer
	headers []string // in which tokens are sent, each once
	cache   *tokenCache
	now     func() time.Time
}

// maxTokenLength is above what fits in most servers' header buffers. A longer token costs more to hash than it may.
const maxTokenLength = 8 << 10

// newTokens returns nil where no issuer is believed.
func newTokens(issuers []config.Issuer, opts Options) (*tokens, error) {
	if len(issuers) == 0 {
		return nil, nil
	}
	t := &tokens{cache: newTokenCache(), now: opts.Now}
	var faults []error
	for _, cfg := range issuers {
		i, err := newIssuer(cfg, opts)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		t.issuers = append(t.issuers, i)
		if !slices.Contains(t.headers, i.header) {
			t.headers = append(t.headers, i.header)
		}
	}
	return t, errors.Join(faults...)
}

// run keeps all issuers' keys current, each by itself, since one that hangs must not keep the others' keys old.
func (t *tokens) run(ctx context.Context) {
	var all sync.WaitGroup
	for _, i := range t.issuers {
		all.Go(func() { i.keys.run(ctx) })
	}
	all.Wait()
	<-ctx.Done()
}

func (t *tokens) subject(_ context.Context, _ netip.Addr, h http.Header) (sluice.Subject, bool) {
	for _, header := range t.headers {
		token, ok := single(h, header)
		if !ok {
			continue
		}
		if header == "Authorization" {
			token, ok = cutBearer(token)
		} else if bare, found := cutBearer(token); found {
			token = bare
		}
		if !ok || len(token) > maxTokenLength || strings.Count(token, ".") != 2 {
			continue
		}
		if s, ok := t.verify(header, token); ok {
			return s, true
		}
	}
	return sluice.Subject{}, false
}

// verify returns whom a token was issued to. A signature costs tens of microseconds to check, so it remembers those that
// were good; bad ones it does not, because anyone can make as many as he likes.
func (t *tokens) verify(header, token string) (sluice.Subject, bool) {
	hash := sha256.Sum256([]byte(token))
	now := t.now()
	if v, ok := t.cache.get(hash, now); ok && v.issuer.header == header {
		return v.subject, true
	}
	claimed := jwt.MapClaims{}
	unverified, _, err := new(jwt.Parser).ParseUnverified(token, claimed)
	if err != nil {
		return sluice.Subject{}, false
	}
	// Not believed: it only chooses who is asked, and ends it early where there is no key to verify with.
	name, _ := claimed.GetIssuer()
	for _, i := range t.issuers {
		if i.header != header || i.name != name {
			continue
		}
		keys := i.keys.current.Load()
		if _, err := i.key(keys, unverified); err != nil {
			continue
		}
		if v, err := i.verify(token, keys); err == nil {
			t.cache.put(hash, v, now)
			return v.subject, true
		}
	}
	return sluice.Subject{}, false
}

// verified is a token whose signature and claims were checked.
type verified struct {
	subject sluice.Subject
	issuer  *issuer
	// keys are those it was checked with. Once the issuer has others, it must be checked again.
	keys *keySet
	// until is when the token stops to be good.
	until time.Time
}

// verify checks everything about a token.
func (i *issuer) verify(token string, keys *keySet) (verified, error) {
	claims := jwt.MapClaims{}
	_, err := i.parser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) { return i.key(keys, t) })
	if err != nil {
		return verified{}, err
	}
	s, ok := i.subject(claims)
	expires, err := claims.GetExpirationTime()
	if !ok || err != nil || expires == nil {
		return verified{}, errors.New("claims: they do not name a user in 1 to 255 characters")
	}
	return verified{s, i, keys, expires.Add(leeway)}, nil
}

// key returns the key that a token names, and asks for it where it is not known. The fields jku, x5u and jwk, by which a
// token would bring its own key, are not looked at.
func (i *issuer) key(keys *keySet, t *jwt.Token) (any, error) {
	// An extension that must be understood, and we understand none.
	if _, critical := t.Header["crit"]; critical {
		return nil, errors.New("crit: no extension is supported")
	}
	key, ok := keys.find(t.Header["kid"], t.Method.Alg())
	if !ok {
		i.keys.ask()
		return nil, errors.New("kid: no such key")
	}
	return key, nil
}
