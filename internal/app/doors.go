package app

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"

	"github.com/sluicehq/sluice/internal/certs"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/httpserver"
	"github.com/sluicehq/sluice/internal/identity"
)

// tlsConfig returns nil for a listener without certificates.
func (a *App) tlsConfig(name string, cfg config.TLS, protocols ...string) (*tls.Config, error) {
	if cfg.CertFile == "" {
		return nil, nil //nolint:nilnil // plain text
	}
	server, err := certs.NewServer(cfg, certs.Options{NextProtos: protocols, OnReload: func(err error) {
		if err != nil {
			a.log.Error("certificates were not taken: the last good ones stay", "door", name, "error", err)
			return
		}
		a.log.Info("certificates reloaded", "door", name)
	}})
	if err != nil {
		return nil, fmt.Errorf("%s.tls: %w", name, err)
	}
	return server.Config(), nil
}

// httpDoor is the data listener.
func (a *App) httpDoor(cfg *config.Config, l net.Listener) (*server, error) {
	mux := http.NewServeMux()
	mux.Handle("/v1/", a.checkAPI())
	mux.Handle("/json", a.envoy.JSON())
	mux.Handle("/v1/forward-auth", a.whole(func(f *front) http.Handler { return f.forwardAuth }))
	mux.HandleFunc("GET /livez", func(http.ResponseWriter, *http.Request) {})
	return a.newHTTP("http", cfg.HTTP.TLS, a.proxied(l), a.traced(mux), httpserver.Options{MaxInFlight: cfg.HTTP.MaxInFlight})
}

// gatewayDoor is the reverse proxy.
func (a *App) gatewayDoor(cfg *config.Config, l net.Listener) (*server, error) {
	handler := a.whole(func(f *front) http.Handler { return f.gateway })
	return a.newHTTP("gateway", cfg.Gateway.TLS, a.proxied(l), a.traced(handler), httpserver.Options{MaxInFlight: cfg.HTTP.MaxInFlight, Streams: true})
}

// maxAdminConns is plenty for operators, and keeps them from taking what clients need.
const maxAdminConns = 256

func (a *App) newHTTP(name string, cfg config.TLS, l net.Listener, h http.Handler, opts httpserver.Options) (*server, error) {
	var err error
	if opts.TLS, err = a.tlsConfig(name, cfg); err != nil {
		return nil, err
	}
	opts.Log = a.log
	return httpDoor(name, l, httpserver.New(h, opts)), nil
}

// checkAPI is the check API as it is configured now.
func (a *App) checkAPI() http.Handler {
	return a.whole(func(f *front) http.Handler { return f.check })
}

// proxied reads the PROXY protocol while that is configured. Connections that do not begin with it are left as they are.
func (a *App) proxied(l net.Listener) net.Listener {
	return identity.ProxyListener(l, func(peer netip.Addr) bool {
		f := a.front.Load()
		return f.proxied && f.identity.Trusted(peer)
	})
}

// traced takes the caller's trace along, where traces are written.
func (a *App) traced(next http.Handler) http.Handler {
	if a.traces == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(a.traces.FromHTTP(r.Context(), r.Header)))
	})
}
