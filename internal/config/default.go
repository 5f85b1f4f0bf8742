package config

import (
	"time"

	"github.com/sluicehq/sluice/internal/ruledoc"
)

// Default returns the configuration of a node that was told nothing: listeners on this machine only, Redis on this machine.
func Default() Config {
	return Config{
		Enabled: true,
		HTTP:    HTTP{Listen: "127.0.0.1:8080", MaxInFlight: 10_000},
		GRPC:    GRPC{Listen: "127.0.0.1:8081"},
		Admin:   Admin{Listen: "127.0.0.1:9090"},
		Redis:   Redis{URL: "redis://127.0.0.1:6379"},
		Limiter: Limiter{Timeout: ruledoc.Duration(10 * time.Millisecond), FallbackCounters: 1_000_000},
		Identity: Identity{ //nolint:gosec // names of headers, not credentials
			Order:        []string{"api_key", "jwt", "header"},
			Forwarded:    "x-forwarded-for",
			IPv6Prefix:   64,
			APIKeyHeader: "X-API-Key",
		},
		Answers:  Answers{Headers: []string{"ietf", "x-ratelimit"}},
		Log:      Log{Level: "info", Format: "auto"},
		Shutdown: Shutdown{Grace: ruledoc.Duration(2 * time.Second), Drain: ruledoc.Duration(5 * time.Second)},
		Database: Database{MaxConns: 4},
		Control:  Control{OIDC: OIDC{GrantsClaim: "sluice_grants", Scopes: []string{"profile", "email"}}},
	}
}

// fillEntries gives the tables of lists the defaults of what they do not say. Only what was not written is filled: an
// empty path that somebody wrote is a fault, not the default.
func (l *loader) fillEntries() {
	fill := func(path, name string, set func()) {
		if _, written := l.origins[joinKey(path, name)]; !written {
			set()
		}
	}
	for i := range l.cfg.Gateway.Upstreams {
		u, at := &l.cfg.Gateway.Upstreams[i], indexed("gateway.upstream", i)
		fill(at, "timeout", func() { u.Timeout = ruledoc.Duration(30 * time.Second) })
	}
	for i := range l.cfg.Gateway.Routes {
		r, at := &l.cfg.Gateway.Routes[i], indexed("gateway.route", i)
		fill(at, "path", func() { r.Path = "/" })
		fill(at, "namespace", func() { r.Namespace = "default" })
	}
	for i := range l.cfg.Identity.JWT {
		j, at := &l.cfg.Identity.JWT[i], indexed("identity.jwt", i)
		fill(at, "header", func() { j.Header = "Authorization" })
		fill(at, "user_claim", func() { j.UserClaim = "sub" })
	}
}
