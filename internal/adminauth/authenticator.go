package adminauth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/registry"
)

// Errors that callers branch on. Others mean that it could not be found out who asks.
var (
	// ErrMissing means that nothing was sent by which somebody could be known.
	ErrMissing = errors.New("no credentials")
	// ErrWrong means that what was sent is nobody's, or not valid any more.
	ErrWrong = errors.New("wrong credentials")
	// ErrNone means that nobody can be known: no token is configured, and no database that could hold one.
	ErrNone = errors.New("no token is configured")
)

// BootstrapName is the actor of the configured token.
const BootstrapName = "admin.token"

// Tokens finds tokens on record; see postgres.DB.
type Tokens interface {
	TokenByID(ctx context.Context, id string) (registry.Token, error)
}

// Options say by what somebody can be known.
type Options struct {
	// Bootstrap is the configured token, asked for at every request so that it can be replaced. It may everything. Default: none.
	Bootstrap func() config.Secret
	// Tokens are those on record. Default: none.
	Tokens Tokens
	// Parse splits a token's text and hashes its secret; false where it is none. The id is returned for all texts of the form, also with
	// false, and is empty for others. Required with Tokens.
	Parse func(text string) (id string, hash []byte, ok bool)
	// SignIn is for people with browsers. Default: they cannot.
	SignIn *SignIn
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Authenticator finds out who asks. It is safe for concurrent use.
type Authenticator struct {
	opts  Options
	cache *cache
}

// New returns an authenticator.
func New(opts Options) *Authenticator {
	if opts.Bootstrap == nil {
		opts.Bootstrap = func() config.Secret { return "" }
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Authenticator{opts: opts, cache: newCache(opts.Tokens, opts.Now)}
}

// SignIn returns how people sign in, nil where they cannot.
func (a *Authenticator) SignIn() *SignIn { return a.opts.SignIn }

// Account names what the request's token is tried for, for those who count wrong tries: the id in a text of the tokens' form, whether
// anybody has it or not, and BootstrapName for any other, which can only be meant for the configured one. It is empty where no token was
// sent. Nobody is asked and nothing compared, so the answer and its time tell nothing about who exists.
func (a *Authenticator) Account(r *http.Request) string {
	text, isBearer := bearer(r)
	if !isBearer || text == "" {
		return ""
	}
	if a.opts.Tokens != nil && a.opts.Parse != nil {
		if id, _, _ := a.opts.Parse(text); id != "" {
			return strings.Clone(id) // it may be kept, and the secret must not be with it
		}
	}
	return BootstrapName
}

// Authenticate returns who sent the request. A bearer token goes before a session.
func (a *Authenticator) Authenticate(r *http.Request) (registry.Actor, error) {
	bootstrap := a.opts.Bootstrap()
	if bootstrap == "" && a.opts.Tokens == nil && a.opts.SignIn == nil {
		return registry.Actor{}, ErrNone
	}
	text, isBearer := bearer(r)
	switch {
	case isBearer && bootstrap != "" && equal(text, bootstrap.Reveal()):
		return registry.Actor{Name: BootstrapName, Grants: []registry.Grant{{Namespace: Everywhere, Role: registry.Admin}}}, nil
	case isBearer:
		return a.byToken(r.Context(), text)
	case a.opts.SignIn != nil:
		return a.opts.SignIn.session(r)
	}
	return registry.Actor{}, ErrMissing
}

func (a *Authenticator) byToken(ctx context.Context, text string) (registry.Actor, error) {
	if a.opts.Tokens == nil || a.opts.Parse == nil {
		return registry.Actor{}, ErrWrong
	}
	id, hash, ok := a.opts.Parse(text)
	if !ok {
		return registry.Actor{}, ErrWrong
	}
	token, err := a.cache.token(ctx, id)
	if err != nil && !errors.Is(err, registry.ErrNotFound) {
		return registry.Actor{}, fmt.Errorf("look up the token: %w", err)
	}
	// Compared also where there is none, so that known and unknown ids take the same work.
	same := subtle.ConstantTimeCompare(hash, token.Hash) == 1
	now := a.opts.Now()
	if err != nil || !same || !token.RevokedAt.IsZero() || !token.ExpiresAt.IsZero() && !now.Before(token.ExpiresAt) {
		return registry.Actor{}, ErrWrong
	}
	return registry.Actor{Name: fmt.Sprintf("%s (token %s)", token.Name, token.ID), Grants: token.Grants}, nil
}

func bearer(r *http.Request) (token string, ok bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}

// equal takes the same time whatever differs, the lengths included.
func equal(got, want string) bool {
	a, b := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
