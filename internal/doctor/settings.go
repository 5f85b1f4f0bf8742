package doctor

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/sluicehq/sluice/internal/config"
)

// settings looks at what the configuration alone tells.
func settings(cfg *config.Config) []Finding {
	findings := []Finding{hashKey(cfg), proxyTrust(cfg), adminToken(cfg)}
	for _, l := range []struct {
		name, listen string
		tls          config.TLS
	}{{"http", cfg.HTTP.Listen, cfg.HTTP.TLS}, {"grpc", cfg.GRPC.Listen, cfg.GRPC.TLS}, {"admin", cfg.Admin.Listen, cfg.Admin.TLS}} {
		if l.listen != "" && l.tls.CertFile == "" && !loopback(l.listen) {
			findings = append(findings, Finding{
				l.name, Warning, "listens on " + l.listen + " without TLS",
				fmt.Sprintf("set %s.tls.cert_file and key_file, or listen on 127.0.0.1 behind something that encrypts", l.name),
			})
		}
	}
	if !cfg.Enabled {
		findings = append(findings, Finding{"enabled", Fault, "everything passes", "set enabled = true"})
	}
	return findings
}

func hashKey(cfg *config.Config) Finding {
	if cfg.Redis.HashKey == "" {
		return Finding{
			"hash key", Warning, "the published default: whoever knows a user's name can compute the slot of its counters, and aim at one",
			"set redis.hash_key to the output of: openssl rand -hex 16 (the same on all nodes; counters start afresh)",
		}
	}
	return Finding{Topic: "hash key", Grade: Fine, Found: "set"}
}

func proxyTrust(cfg *config.Config) Finding {
	id := &cfg.Identity
	const topic = "proxy trust"
	for _, p := range id.TrustedProxies {
		if p.Bits() == 0 {
			return Finding{
				topic, Fault, p.String() + " trusts everybody: each caller chooses its own address and user",
				"list the addresses of your proxies in identity.trusted_proxies",
			}
		}
	}
	headers := id.Headers != (config.IdentityHeaders{})
	switch {
	case id.TrustedDepth > 0 && len(id.TrustedProxies) == 0:
		return Finding{
			topic, Warning, fmt.Sprintf("trusted_depth = %d believes whoever connects", id.TrustedDepth),
			"prefer identity.trusted_proxies, or make sure that nobody reaches the listener but the proxies",
		}
	case len(id.TrustedProxies) == 0 && (headers || id.ProxyProtocol):
		return Finding{
			topic, Warning, "headers or PROXY protocol are configured and nobody is trusted to send them: they are ignored",
			"list your proxies in identity.trusted_proxies",
		}
	case len(id.TrustedProxies) == 0:
		return Finding{Topic: topic, Grade: Fine, Found: "nobody is trusted: the client is whoever connects"}
	}
	return Finding{Topic: topic, Grade: Fine, Found: fmt.Sprint("trusted: ", id.TrustedProxies)}
}

func adminToken(cfg *config.Config) Finding {
	switch {
	case cfg.Admin.Listen == "":
		return Finding{Topic: "admin", Grade: Fine, Found: "no admin listener"}
	case cfg.Admin.Token == "":
		return Finding{
			"admin", Warning, "no token: status, explain, reset and tail answer nobody",
			"set admin.token, for instance by SLUICE_ADMIN__TOKEN_FILE",
		}
	}
	return Finding{Topic: "admin", Grade: Fine, Found: "token set"}
}

func loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && addr.IsLoopback()
}
