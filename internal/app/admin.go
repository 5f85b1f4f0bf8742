package app

import (
	"net"

	"github.com/sluicehq/sluice/internal/adminauth"
	"github.com/sluicehq/sluice/internal/adminhttp"
	"github.com/sluicehq/sluice/internal/apikey"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/httpserver"
)

// adminDoor is the operators' listener.
func (a *App) adminDoor(cfg *config.Config, l net.Listener) (*server, error) {
	opts := adminhttp.Options{
		Token:  a.adminToken,
		Health: a.health, Rules: a.limiter.Rules, Status: a.status, Metrics: a.metrics.Handler(), Explain: a.checkAPI(),
		GRPC: a.adminCalls(), Tail: a.tail, Store: a.counters.store, KeyOf: a.counters.keyOf, Directory: subjectsOf(a.live, a.directory),
		Pprof: cfg.Admin.Pprof, Recent: a.recent.Requests, Log: a.log,
	}
	auth := adminauth.Options{Bootstrap: a.adminToken}
	pepper := cfg.Control.Pepper.Reveal()
	if a.database != nil {
		opts.Database = a.database
	}
	if a.database != nil && pepper != "" {
		auth.Tokens, auth.Parse = a.database, tokenParser(pepper)
		opts.IssueKey, opts.IssueToken = issueKey(pepper), issueToken(pepper)
	}
	if oidc := cfg.Control.OIDC; oidc.Issuer != "" {
		signIn, err := adminauth.NewSignIn(pepper, adminauth.SignInOptions{
			Issuer: oidc.Issuer, ClientID: oidc.ClientID, ClientSecret: oidc.ClientSecret, RedirectURL: oidc.RedirectURL,
			GrantsClaim: oidc.GrantsClaim, Scopes: oidc.Scopes, Log: a.log,
		})
		if err != nil {
			return nil, err
		}
		auth.SignIn = signIn
	}
	opts.Auth = adminauth.New(auth)
	return a.newHTTP("admin", cfg.Admin.TLS, l, adminhttp.New(a.engine, opts), httpserver.Options{Streams: true, MaxConns: maxAdminConns, HTTP2: true})
}

// adminToken is the configured token, which a reload may replace.
func (a *App) adminToken() config.Secret { return a.config.Load().Config.Admin.Token }

// tokenParser reads operators' tokens. Ids that were never handed out are no tokens, and are looked up nowhere; the id
// is returned all the same, because wrong tries are counted by it.
func tokenParser(pepper string) func(text string) (id string, hash []byte, ok bool) {
	return func(text string) (string, []byte, bool) {
		id, secret, ok := apikey.ParseToken(text)
		hash := apikey.Hash(pepper, secret)
		return id, hash, apikey.GenuineToken(pepper, id) && ok
	}
}

func issueKey(pepper string) func(id string) (adminhttp.Issued, error) {
	return func(id string) (adminhttp.Issued, error) {
		if id != "" {
			text, hash := apikey.Renew(pepper, id)
			return adminhttp.Issued{Text: text, ID: id, Hash: hash}, nil
		}
		text, id, hash := apikey.New(pepper)
		return adminhttp.Issued{Text: text, ID: id, Hash: hash}, nil
	}
}

func issueToken(pepper string) func() (adminhttp.Issued, error) {
	return func() (adminhttp.Issued, error) {
		text, id, hash := apikey.NewToken(pepper)
		return adminhttp.Issued{Text: text, ID: id, Hash: hash}, nil
	}
}
