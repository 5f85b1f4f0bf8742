package adminauth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/registry"
)

// SignInOptions say which identity provider is believed. All but Scopes, ClientSecret, Log, Client and Now are required.
type SignInOptions struct {
	Issuer, ClientID, RedirectURL string
	ClientSecret                  config.Secret
	// GrantsClaim names the claim with the grants, a list of namespace:role.
	GrantsClaim string
	// Scopes are asked for besides openid.
	Scopes []string
	// Client talks to the provider. Default: one with a deadline.
	Client *http.Client
	// Log is told who signed in, and why somebody could not. Default: nobody.
	Log *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

const (
	// sessionLasts is how long a session is: what the provider says is believed for so long. There is no way to end one earlier than the
	// browser's, so it is not a day.
	sessionLasts = time.Hour
	// signInLasts is how long somebody may take at the provider.
	signInLasts = 10 * time.Minute
	// providerTimeout bounds each call to the provider.
	providerTimeout = 5 * time.Second

	sessionCookie = "__Host-sluice_session"
	signInCookie  = "__Host-sluice_signin"
)

// SignIn lets people in by an OpenID Connect provider: authorization code with PKCE. What it learns is kept in a sealed cookie, so that
// every node with the same pepper knows the session. It is safe for concurrent use.
type SignIn struct {
	opts   SignInOptions
	sealer *sealer

	mu       sync.Mutex
	provider *oidc.Provider // nil until it answered for the first time
}

// NewSignIn checks the options. It asks the provider nothing yet: a node starts while that is down.
func NewSignIn(pepper string, opts SignInOptions) (*SignIn, error) {
	if pepper == "" {
		return nil, errors.New("control.oidc: sessions are sealed with control.pepper: set it")
	}
	if opts.Client == nil {
		opts.Client = &http.Client{Timeout: providerTimeout}
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	sealer, err := newSealer(pepper, opts.Now)
	if err != nil {
		return nil, err
	}
	return &SignIn{opts: opts, sealer: sealer}, nil
}

// attempt is what must come back from the provider.
type attempt struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
}

// session is who signed in.
type session struct {
	Name   string           `json:"name"`
	Grants []registry.Grant `json:"grants"`
}

// Routes are served to everyone, by their patterns. Failures are answered with 401, for a throttle to count.
func (s *SignIn) Routes() map[string]http.Handler {
	foreign := http.NewCrossOriginProtection()
	return map[string]http.Handler{
		"GET /v1/auth/login":    http.HandlerFunc(s.login),
		"GET /v1/auth/callback": http.HandlerFunc(s.callback),
		"POST /v1/auth/logout":  foreign.Handler(http.HandlerFunc(s.logout)),
	}
}

// session returns who sent the request.
func (s *SignIn) session(r *http.Request) (registry.Actor, error) {
	if _, err := r.Cookie(sessionCookie); err != nil {
		return registry.Actor{}, ErrMissing
	}
	var v session
	if err := s.sealer.get(r, sessionCookie, &v); err != nil {
		return registry.Actor{}, ErrWrong
	}
	return registry.Actor{Name: v.Name, Grants: v.Grants}, nil
}

func (s *SignIn) login(w http.ResponseWriter, r *http.Request) {
	provider, err := s.found(r.Context())
	if err != nil {
		s.fail(w, r, http.StatusServiceUnavailable, "The identity provider does not answer.", err)
		return
	}
	a := attempt{State: nonce(), Nonce: nonce(), Verifier: oauth2.GenerateVerifier()}
	// Lax, because the provider sends the browser back from another site.
	if err := s.sealer.set(w, signInCookie, a, signInLasts, http.SameSiteLaxMode); err != nil {
		s.fail(w, r, http.StatusInternalServerError, "The sign-in could not begin.", err)
		return
	}
	http.Redirect(w, r, s.client(provider).AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)), http.StatusSeeOther)
}

func (s *SignIn) callback(w http.ResponseWriter, r *http.Request) {
	var a attempt
	err := s.sealer.get(r, signInCookie, &a)
	clearCookie(w, signInCookie, http.SameSiteLaxMode) // once, whatever comes of it
	query := r.URL.Query()
	switch {
	case err != nil || subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(a.State)) != 1:
		s.fail(w, r, http.StatusUnauthorized, "This sign-in was not begun here, or took too long: begin again at /v1/auth/login.", err)
		return
	case query.Get("code") == "":
		s.fail(w, r, http.StatusUnauthorized, "The identity provider refused.", fmt.Errorf("provider said %q", query.Get("error")))
		return
	}
	who, err := s.exchange(r.Context(), query.Get("code"), a)
	if err != nil {
		s.fail(w, r, http.StatusUnauthorized, "The identity provider's answer was not accepted.", err)
		return
	}
	if len(who.Grants) == 0 {
		s.fail(w, r, http.StatusForbidden, "You are known, but have no grants here.", fmt.Errorf("%s has none in claim %q", who.Name, s.opts.GrantsClaim))
		return
	}
	if err := s.sealer.set(w, sessionCookie, who, sessionLasts, http.SameSiteStrictMode); err != nil {
		s.fail(w, r, http.StatusInternalServerError, "The session could not begin.", err)
		return
	}
	s.opts.Log.InfoContext(r.Context(), "signed in", "actor", who.Name, "from", r.RemoteAddr)
	// A redirect would still count as coming from the provider's site, and the strict cookie would stay behind.
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	_, _ = w.Write([]byte(`<!doctype html><meta http-equiv="refresh" content="0; url=/"><title>sluice</title><p><a href="/">Signed in.</a>`))
}

func (s *SignIn) logout(w http.ResponseWriter, _ *http.Request) {
	clearCookie(w, sessionCookie, http.SameSiteStrictMode)
	w.WriteHeader(http.StatusNoContent)
}

// exchange trades the code for a token, verifies it and reads who it is.
func (s *SignIn) exchange(ctx context.Context, code string, a attempt) (session, error) {
	provider, err := s.found(ctx)
	if err != nil {
		return session{}, err
	}
	ctx = oidc.ClientContext(ctx, s.opts.Client)
	tokens, err := s.client(provider).Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return session{}, fmt.Errorf("exchange the code: %w", err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	token, err := provider.VerifierContext(ctx, &oidc.Config{ClientID: s.opts.ClientID, Now: s.opts.Now}).Verify(ctx, raw)
	if err != nil {
		return session{}, err
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(a.Nonce)) != 1 {
		return session{}, errors.New("the token was made for another sign-in")
	}
	var claims map[string]any
	if err := token.Claims(&claims); err != nil {
		return session{}, err
	}
	return session{Name: nameIn(claims, token.Subject), Grants: grantsIn(claims[s.opts.GrantsClaim])}, nil
}

// nameIn is how somebody stands in the history: by a verified address, else by what the provider calls them.
func nameIn(claims map[string]any, subject string) string {
	if email, _ := claims["email"].(string); email != "" && claims["email_verified"] == true {
		return "user " + email
	}
	return "user " + subject
}

// grantsIn reads a list of namespace:role. What is not understood grants nothing.
func grantsIn(claim any) (grants []registry.Grant) {
	list, isList := claim.([]any)
	if text, isText := claim.(string); isText && !isList {
		for _, one := range strings.Fields(text) {
			list = append(list, one)
		}
	}
	for _, one := range list {
		text, _ := one.(string)
		at := strings.LastIndex(text, ":")
		if at <= 0 {
			continue
		}
		if g := (registry.Grant{Namespace: text[:at], Role: registry.Role(text[at+1:])}); Known(g.Role) {
			grants = append(grants, g)
		}
	}
	return grants
}

// found returns the provider, asking for its description the first time.
func (s *SignIn) found(ctx context.Context) (*oidc.Provider, error) {
	s.mu.Lock()
	provider := s.provider
	s.mu.Unlock()
	if provider != nil {
		return provider, nil
	}
	// The provider keeps the context for fetching keys later, when this request is over.
	provider, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), s.opts.Client), s.opts.Issuer)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.provider = provider
	return provider, nil
}

func (s *SignIn) client(provider *oidc.Provider) *oauth2.Config {
	return &oauth2.Config{
		ClientID: s.opts.ClientID, ClientSecret: s.opts.ClientSecret.Reveal(), Endpoint: provider.Endpoint(), RedirectURL: s.opts.RedirectURL,
		Scopes: append([]string{oidc.ScopeOpenID}, s.opts.Scopes...),
	}
}

// fail tells the person what to do, and the log why.
func (s *SignIn) fail(w http.ResponseWriter, r *http.Request, status int, told string, cause error) {
	s.opts.Log.WarnContext(r.Context(), "sign-in", "from", r.RemoteAddr, "status", status, "error", cause)
	http.Error(w, told, status)
}
