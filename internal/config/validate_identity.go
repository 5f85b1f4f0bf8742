package config

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// minHMACSecret is the length of the shortest key that HS256 allows (RFC 7518, 3.2).
const minHMACSecret = 32

func (l *loader) checkIdentity() {
	id := &l.cfg.Identity
	l.listOf("identity.order", id.Order, orders)
	l.oneOf("identity.forwarded", id.Forwarded, forwardHeaders)
	l.atLeast("identity.trusted_depth", int64(id.TrustedDepth), 0)
	if id.IPv6Prefix < 48 || id.IPv6Prefix > 64 {
		l.wrong("identity.ipv6_prefix", "is "+strconv.Itoa(id.IPv6Prefix), "want 48 to 64")
	}
	l.header("identity.api_key_header", id.APIKeyHeader)
	for path, name := range map[string]string{
		"identity.headers.user": id.Headers.User, "identity.headers.tenant": id.Headers.Tenant, "identity.headers.tier": id.Headers.Tier,
	} {
		if name != "" {
			l.header(path, name)
		}
	}
	for attribute, name := range id.Attributes {
		l.header(joinKey("identity.attributes", attribute), name)
	}
	trusting := len(id.TrustedProxies) > 0 || id.TrustedDepth > 0
	if id.Headers != (IdentityHeaders{}) && !trusting {
		l.warn("identity.headers: no proxy is trusted, so these headers are never believed; set identity.trusted_proxies")
	}
	if id.ProxyProtocol && len(id.TrustedProxies) == 0 {
		l.warn("identity.proxy_protocol: no proxy is trusted, so nobody may use it; set identity.trusted_proxies")
	}
	for i := range id.JWT {
		l.checkIssuer(&id.JWT[i], indexed("identity.jwt", i))
	}
}

func (l *loader) header(path, name string) {
	if !httpguts.ValidHeaderFieldName(name) {
		l.wrong(path, fmt.Sprintf("%q is not the name of a header", name), `want letters, digits and hyphens, such as "X-User"`)
	}
}

func (l *loader) checkIssuer(j *Issuer, at string) {
	if j.Issuer == "" {
		l.wrong(at+".issuer", "is missing", "want the iss claim of the tokens, such as \"https://login.example.com/\"")
	}
	if j.Audience == "" {
		l.wrong(at+".audience", "is missing", "without it, tokens made for other services would be believed")
	}
	l.header(at+".header", j.Header)
	if j.UserClaim == "" {
		l.wrong(at+".user_claim", "is empty", "leave it out for \"sub\"")
	}
	l.checkKeys(j, at)
	l.checkAlgorithms(j, at)
}

func (l *loader) checkKeys(j *Issuer, at string) {
	given := 0
	for _, v := range []string{j.JWKSURL, j.JWKSFile, j.Secret.Reveal()} {
		if v != "" {
			given++
		}
	}
	if given != 1 {
		l.wrong(at, fmt.Sprintf("has %d of jwks_url, jwks_file and secret", given), "set exactly one of them")
	}
	if j.JWKSURL != "" {
		u, err := url.Parse(j.JWKSURL)
		switch {
		case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
			l.wrong(at+".jwks_url", "is not a URL", "want https://host/path")
		case u.Scheme == "http" && !loopback(u.Hostname()):
			l.wrong(at+".jwks_url", "is not https", "keys that anybody on the way can replace prove nothing")
		}
	}
	if n := len(j.Secret); n > 0 && n < minHMACSecret {
		l.wrong(at+".secret", fmt.Sprintf("has %d characters", n), fmt.Sprintf("want %d or more, random ones", minHMACSecret))
	}
}

// checkAlgorithms keeps a public key from being used as a shared secret: HS* goes with secret, all others with key sets.
func (l *loader) checkAlgorithms(j *Issuer, at string) {
	path := at + ".algorithms"
	if len(j.Algorithms) == 0 {
		l.wrong(path, "is missing", "list what the issuer signs with, such as [\"RS256\"]")
	}
	l.listOf(path, j.Algorithms, algorithms)
	for i, alg := range j.Algorithms {
		if !slices.Contains(algorithms, alg) {
			continue
		}
		if shared := strings.HasPrefix(alg, "HS"); shared && j.Secret == "" {
			l.wrong(indexed(path, i), alg+" is used with a shared secret only", "set secret, or list the algorithm of the key set")
		} else if !shared && j.Secret != "" {
			l.wrong(indexed(path, i), alg+" is not used with a shared secret", "want HS256, HS384 or HS512, or jwks_url in place of secret")
		}
	}
}
