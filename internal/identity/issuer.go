package identity

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/identity/edge"
)

// issuer is one that signs tokens.
type issuer struct {
	name   string
	header string // canonical
	user   string // claims
	tenant string
	tier   string
	parser *jwt.Parser
	keys   *keyStore
}

// leeway is how far an issuer's clock may be off.
const leeway = 30 * time.Second

func newIssuer(cfg config.Issuer, opts Options) (*issuer, error) {
	if cfg.Header == "" {
		cfg.Header = "Authorization"
	}
	if cfg.UserClaim == "" {
		cfg.UserClaim = "sub"
	}
	faults := []error{checkNames(cfg), checkAlgorithms(cfg)}
	keys, err := newKeyStore(cfg, opts)
	if err := errors.Join(append(faults, err)...); err != nil {
		return nil, fmt.Errorf("jwt issuer %q: %w", cfg.Issuer, err)
	}
	return &issuer{
		name: cfg.Issuer, header: http.CanonicalHeaderKey(cfg.Header),
		user: cfg.UserClaim, tenant: cfg.TenantClaim, tier: cfg.TierClaim,
		keys: keys,
		parser: jwt.NewParser(jwt.WithValidMethods(cfg.Algorithms), jwt.WithIssuer(cfg.Issuer), jwt.WithAudience(cfg.Audience),
			jwt.WithExpirationRequired(), jwt.WithLeeway(leeway), jwt.WithStrictDecoding(), jwt.WithTimeFunc(opts.Now)),
	}, nil
}

func checkNames(cfg config.Issuer) error {
	var faults []error
	if cfg.Issuer == "" {
		faults = append(faults, errors.New("issuer: missing; it must equal the token's iss"))
	}
	if cfg.Audience == "" {
		faults = append(faults, errors.New("audience: missing; without it, tokens that were issued for other services would be believed"))
	}
	return errors.Join(faults...)
}

// hmacKeySizes are the algorithms that need a shared secret, and how long it must be at least: as long as the hash.
var hmacKeySizes = map[string]int{"HS256": 32, "HS384": 48, "HS512": 64}

var publicKeyAlgorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

func checkAlgorithms(cfg config.Issuer) error {
	var faults []error
	if len(cfg.Algorithms) == 0 {
		faults = append(faults, errors.New(`algorithms: missing; list what the issuer signs with, such as ["RS256"]`))
	}
	for _, alg := range cfg.Algorithms {
		size, shared := hmacKeySizes[alg]
		switch {
		case shared && cfg.Secret == "":
			faults = append(faults, fmt.Errorf("algorithms: %s needs secret: a published key must never be taken for a shared one", alg))
		case shared && len(cfg.Secret) < size:
			faults = append(faults, fmt.Errorf("secret: %d bytes are too few for %s: use at least %d", len(cfg.Secret), alg, size))
		case !shared && !slices.Contains(publicKeyAlgorithms, alg):
			faults = append(faults, fmt.Errorf("algorithms: %q is not supported: choose of %v, or HS256, HS384, HS512 with secret", alg, publicKeyAlgorithms))
		case !shared && cfg.Secret != "":
			faults = append(faults, fmt.Errorf("algorithms: %s does not work with secret: give jwks_url or jwks_file", alg))
		}
	}
	return errors.Join(faults...)
}

// checkKeyURL wants https, because whoever can change the keys can be anyone. A sidecar on this host may speak http.
func checkKeyURL(u *url.URL) error {
	if u.Host == "" || u.User != nil {
		return fmt.Errorf("jwks_url: %q is not a URL with a host and without a password", u.Redacted())
	}
	addr, _ := netip.ParseAddr(u.Hostname())
	if u.Scheme == "https" || u.Scheme == "http" && (addr.IsLoopback() || u.Hostname() == "localhost") {
		return nil
	}
	return fmt.Errorf("jwks_url: %q is not https, which only a loopback host may do without", u.Redacted())
}

// fits tells whether a key is of the kind that the algorithm is for. Without it a public key could be read as a shared
// secret, or a curve be used with another's hash.
func fits(alg string, key any) bool {
	switch k := key.(type) {
	case *rsa.PublicKey:
		return alg[:2] == "RS" || alg[:2] == "PS"
	case *ecdsa.PublicKey:
		return alg == "ES256" && k.Curve == elliptic.P256() || alg == "ES384" && k.Curve == elliptic.P384() ||
			alg == "ES512" && k.Curve == elliptic.P521()
	case ed25519.PublicKey:
		return alg == "EdDSA"
	case []byte:
		_, shared := hmacKeySizes[alg]
		return shared
	}
	return false
}

// subject reads the caller out of verified claims. A claim that is there and is no text spoils the token: half an identity
// would be counted for somebody else.
func (i *issuer) subject(claims jwt.MapClaims) (s sluice.Subject, ok bool) {
	text := func(claim string, required bool) string {
		value, found := claims[claim]
		if claim == "" || !found && !required {
			return ""
		}
		t, isString := value.(string)
		ok = ok && isString && edge.IsText(t)
		return t
	}
	ok = true
	s = sluice.Subject{User: text(i.user, true), Tenant: text(i.tenant, false), Tier: text(i.tier, false)}
	return s, ok
}
