package app

import (
	"context"
	"net/http"
	"slices"

	"github.com/sluicehq/sluice/httplimit"
	"github.com/sluicehq/sluice/internal/checkhttp"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/forwardauth"
	"github.com/sluicehq/sluice/internal/gateway"
	"github.com/sluicehq/sluice/internal/identity"
)

// front is what answers over HTTP, as far as the configuration shapes it. It is replaced whole when that changes; requests
// under way finish with the one they began with.
type front struct {
	check       http.Handler
	identity    *identity.Resolver
	forwardAuth http.Handler
	gateway     *gateway.Gateway // nil: none is configured
	proxied     bool             // the PROXY protocol is read from trusted peers
	stop        context.CancelFunc
	stopped     chan struct{}
}

// newFront makes a front. run starts what it needs in the background.
func (a *App) newFront(cfg *config.Config) (*front, error) {
	resolver, err := identity.New(cfg.Identity, identity.Options{Log: a.log, Keys: keysOf(cfg, a.live)})
	if err != nil {
		return nil, err
	}
	f := &front{
		check:    checkhttp.New(a.engine, checkhttp.Options{Headers: dialects(&cfg.Answers)}),
		identity: resolver,
		proxied:  cfg.Identity.ProxyProtocol,
	}
	f.forwardAuth = forwardauth.New(a.engine, resolver, forwardauth.Options{
		Headers: dialects(&cfg.Answers), Denied: cfg.Answers.ForwardAuthDenied,
	})
	if cfg.Gateway.Listen != "" {
		f.gateway, err = gateway.New(cfg.Gateway, a.engine, resolver, gateway.Options{Headers: dialects(&cfg.Answers), Log: a.log})
	}
	return f, err
}

// run fetches keys for tokens until end.
func (f *front) run(ctx context.Context) {
	ctx, f.stop = context.WithCancel(ctx)
	f.stopped = make(chan struct{})
	go func() {
		defer close(f.stopped)
		_ = f.identity.Run(ctx) // ends with ctx
	}()
}

// end stops what run started and closes idle connections.
func (f *front) end() {
	f.stop()
	<-f.stopped
	if f.gateway != nil {
		f.gateway.Close()
	}
}

// dialects reads the names of header dialects, which the configuration has checked.
func dialects(cfg *config.Answers) httplimit.Dialects {
	var d httplimit.Dialects
	if slices.Contains(cfg.Headers, "none") {
		return httplimit.None
	}
	for _, name := range cfg.Headers {
		switch name {
		case "ietf":
			d |= httplimit.IETF
		case "x-ratelimit":
			d |= httplimit.XRateLimit
		}
	}
	return d
}
