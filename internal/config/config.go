// Package config is what a node is told: one TOML file, then the environment, then flags, made into one Config that was
// checked as a whole.
package config

import (
	"net/netip"

	"github.com/sluicehq/sluice/internal/ruledoc"
)

// Config is everything a node is told. Default returns one that works; the names in the tags are those of the file.
type Config struct {
	// Node names this process in logs, heartbeats and answers to operators. Default: the host's name.
	Node string `toml:"node"`
	// Enabled false lets everything pass, labelled. Default true.
	Enabled bool `toml:"enabled"`

	HTTP     HTTP     `toml:"http"`
	GRPC     GRPC     `toml:"grpc"`
	Admin    Admin    `toml:"admin"`
	Gateway  Gateway  `toml:"gateway"`
	Redis    Redis    `toml:"redis"`
	Limiter  Limiter  `toml:"limiter"`
	Rules    Rules    `toml:"rules"`
	Identity Identity `toml:"identity"`
	Answers  Answers  `toml:"answers"`
	Log      Log      `toml:"log"`
	Shutdown Shutdown `toml:"shutdown"`
	Database Database `toml:"database"`
	Control  Control  `toml:"control"`

	// Document holds rules written in the same file, for small installations.
	ruledoc.Document
}

// TLS encrypts a listener. Without files the listener speaks plain text.
type TLS struct {
	// CertFile is the certificate with those between it and the authority, in PEM. Default: none.
	CertFile string `toml:"cert_file"`
	// KeyFile is the certificate's key, in PEM. Default: none.
	KeyFile string `toml:"key_file"`
	// ClientCAFile makes callers show a certificate signed by one of these. Default: callers need none.
	ClientCAFile string `toml:"client_ca_file"`
}

// HTTP is the data listener: check API, forward-auth and Envoy's JSON form.
type HTTP struct {
	// Listen is host:port; empty: no such listener. Default "127.0.0.1:8080".
	Listen string `toml:"listen"`
	TLS    TLS    `toml:"tls"`
	// MaxInFlight is how many requests all doors together work on; more are shed with 503. Default 10,000.
	MaxInFlight int `toml:"max_in_flight"`
}

// GRPC is the listener of the gRPC doors: check, Envoy RLS, health.
type GRPC struct {
	// Listen is host:port; empty: no such listener. Default "127.0.0.1:8081".
	Listen string `toml:"listen"`
	TLS    TLS    `toml:"tls"`
	// Reflection lets tools such as grpcurl list the services. Default false.
	Reflection bool `toml:"reflection"`
}

// Admin is the operators' listener: status, metrics, explain, reset, refund, tail.
type Admin struct {
	// Listen is host:port; empty: no such listener. Default "127.0.0.1:9090".
	Listen string `toml:"listen"`
	TLS    TLS    `toml:"tls"`
	// Token is the bearer token that everything but health and metrics asks for. Without one those are all that answers.
	Token Secret `toml:"token"`
	// Pprof serves profiles under /debug/pprof/, behind the token. Default false.
	Pprof bool `toml:"pprof"`
}

// Gateway is the reverse proxy that enforces limits by itself.
type Gateway struct {
	// Listen is host:port; empty: no gateway. Default: none.
	Listen    string     `toml:"listen"`
	TLS       TLS        `toml:"tls"`
	Upstreams []Upstream `toml:"upstream"`
	Routes    []Route    `toml:"route"`
}

// Upstream is a service that requests are passed to.
type Upstream struct {
	// Name is what routes call it. Required.
	Name string `toml:"name"`
	// URL is http or https, host and port, and optionally a path that is put before the request's. Required.
	URL string `toml:"url"`
	// Timeout bounds the wait for the response's header. Default 30s.
	Timeout ruledoc.Duration `toml:"timeout"`
	// CAFile holds the certificates that sign an https upstream's. Default: the system's.
	CAFile string `toml:"ca_file"`
	// Host is what the upstream reads in the Host field. Default: what the client sent.
	Host string `toml:"host"`
}

// Route sends requests to an upstream. Of those that match, a route with a host is tried before one without, a longer
// path before a shorter one.
type Route struct {
	// Host must be equal to the request's, without port. Default: any.
	Host string `toml:"host"`
	// Path is a prefix by whole segments. Default "/".
	Path string `toml:"path"`
	// Methods that the route takes. Default: any.
	Methods []string `toml:"methods"`
	// Upstream is the name of the one that takes the requests. Required.
	Upstream string `toml:"upstream"`
	// StripPath takes Path off before the request is passed on. Default false.
	StripPath bool `toml:"strip_path"`
	// Namespace chooses the rules. Default "default".
	Namespace string `toml:"namespace"`
	// Cost is the number of units a request takes. Default: the matched rule's cost.
	Cost int64 `toml:"cost"`
	// Attributes are given to every request of this route, for rules to match on or count by.
	Attributes map[string]string `toml:"attributes"`
}

// MemoryURL keeps the counters in the process itself.
const MemoryURL = "memory"

// Redis says where the counters are.
type Redis struct {
	// URL is redis://, rediss://, redis+sentinel:// or redis+cluster://, as in docs/redis.md; "memory" keeps the counters
	// in this process, for a single node. Default "redis://127.0.0.1:6379".
	URL string `toml:"url"`
	// Username replaces the one of the URL. Default: none.
	Username string `toml:"username"`
	// Password replaces the one of the URL. Default: none.
	Password Secret `toml:"password"`
	// CAFile holds the certificates that sign the server's, for rediss://. Default: the system's.
	CAFile string `toml:"ca_file"`
	// CertFile is shown to a server that asks, for rediss://. Default: none.
	CertFile string `toml:"cert_file"`
	// KeyFile is the key of CertFile. Default: none.
	KeyFile string `toml:"key_file"`
	// HashKey is the secret under which subjects are hashed into keys, 32 hexadecimal digits. All nodes must use
	// the same. Default: published, which sluice doctor warns about.
	HashKey Secret `toml:"hash_key"`
}

// Limiter tunes decisions.
type Limiter struct {
	// Timeout bounds every decision, whatever Redis does. Default 10ms.
	Timeout ruledoc.Duration `toml:"timeout"`
	// Nodes is how many nodes share the limits while Redis is away. Default 0: as many as were alive when last seen.
	Nodes int `toml:"nodes"`
	// FallbackCounters bounds the counters kept in memory while Redis is away. Default 1,000,000.
	FallbackCounters int `toml:"fallback_counters"`
}

// Rules says where the rules are.
type Rules struct {
	// Dir holds *.toml, *.yaml and *.yml files, merged. Relative to the configuration file. Default "rules.d" when it exists.
	Dir string `toml:"dir"`
}

// Identity says how callers are told apart at the doors that see their requests: forward-auth and gateway.
type Identity struct {
	// Order lists the sources that are tried, of "api_key", "jwt", "header"; the first that applies wins, a missing or invalid one falls
	// through. The address is always last. Default ["api_key", "jwt", "header"].
	Order []string `toml:"order"`

	// TrustedProxies are those whose word about the client is taken. Default: none.
	TrustedProxies []netip.Prefix `toml:"trusted_proxies"`
	// TrustedDepth is how many proxies stand in front of us, where their addresses are not known; 0 counts by TrustedProxies.
	TrustedDepth int `toml:"trusted_depth"`
	// Forwarded is the header that proxies tell the client's address in: "x-forwarded-for" or "forwarded". Default "x-forwarded-for".
	Forwarded string `toml:"forwarded"`
	// ProxyProtocol reads the PROXY protocol (v1 and v2) from trusted proxies on the HTTP and gateway listeners. Default false.
	ProxyProtocol bool `toml:"proxy_protocol"`
	// IPv6Prefix is how many bits of an IPv6 address make a client, from 48 to 64. Default 64.
	IPv6Prefix int `toml:"ipv6_prefix"`

	// Headers name the fields that trusted proxies set about the caller. Taken from trusted proxies only, and stripped from
	// all other requests before they reach an upstream.
	Headers IdentityHeaders `toml:"headers"`
	// Attributes take request headers as attributes, as the client sent them: {plan = "X-Plan"}.
	Attributes map[string]string `toml:"attributes"`
	// JWT lists the issuers whose tokens are believed.
	JWT []Issuer `toml:"jwt"`
	// APIKeyHeader is where a key is sent, apart from Authorization: Bearer. Default "X-API-Key".
	APIKeyHeader string `toml:"api_key_header"`
}

// IdentityHeaders are header names; empty ones are not used.
type IdentityHeaders struct {
	// User names the header with the user. Default: none.
	User string `toml:"user"`
	// Tenant names the header with the tenant. Default: none.
	Tenant string `toml:"tenant"`
	// Tier names the header with the tier. Default: none.
	Tier string `toml:"tier"`
}

// Issuer is one that signs tokens.
type Issuer struct {
	// Issuer is the iss claim of its tokens. Required.
	Issuer string `toml:"issuer"`
	// Audience must be among the token's. Required.
	Audience string `toml:"audience"`
	// Algorithms are allowed, such as ["RS256"]. Required; "none" never is, HS* only with Secret.
	Algorithms []string `toml:"algorithms"`
	// JWKSURL is where the keys are fetched: https, or http on this machine. One of it, JWKSFile and Secret is required.
	JWKSURL string `toml:"jwks_url"`
	// JWKSFile holds the keys.
	JWKSFile string `toml:"jwks_file"`
	// Secret is the key of HS*, at least 32 characters.
	Secret Secret `toml:"secret"`
	// Header carries the token. Default "Authorization", after "Bearer ".
	Header string `toml:"header"`
	// UserClaim names the claim with the user. Default "sub".
	UserClaim string `toml:"user_claim"`
	// TenantClaim names the claim with the tenant. Default: none.
	TenantClaim string `toml:"tenant_claim"`
	// TierClaim names the claim with the tier. Default: none.
	TierClaim string `toml:"tier_claim"`
}

// Answers shapes what clients are told.
type Answers struct {
	// Headers are the dialects of the header fields, of "ietf", "x-ratelimit"; ["none"] sends none.
	// Default ["ietf", "x-ratelimit"].
	Headers []string `toml:"headers"`
	// ForwardAuthDenied is the status that refuses in forward-auth, from 400 to 499; nginx passes only 401 and 403. Default: the
	// rule's own, usually 429. A proxy can ask for another per request: ?denied=403.
	ForwardAuthDenied int `toml:"forward_auth_denied"`
}

// Log says what is written to standard error.
type Log struct {
	// Level is debug, info, warn or error. Default info.
	Level string `toml:"level"`
	// Format is text, json, or auto: text on a terminal. Default auto.
	Format string `toml:"format"`
}

// Shutdown says how a node stops.
type Shutdown struct {
	// Grace is how long the node stays reachable while it says that it is not ready, so that balancers look away. Default 2s.
	Grace ruledoc.Duration `toml:"grace"`
	// Drain bounds the wait for requests under way. Default 5s.
	Drain ruledoc.Duration `toml:"drain"`
}

// Database says where rules, tiers, subjects and API keys are kept. Without a URL there are only those in files.
type Database struct {
	// URL is postgres://user:password@host:5432/database, as the role that may alter no table. Default: no database.
	URL string `toml:"url"`
	// ListenURL is where notices of changes are listened for, when URL leads to a pooler that hands out connections by
	// transaction. Default: URL.
	ListenURL string `toml:"listen_url"`
	// CAFile holds the certificates that sign the server's; given, the connection must be encrypted. Default: as the URL's
	// sslmode says.
	CAFile string `toml:"ca_file"`
	// MaxConns is how many connections this node opens at most. They are opened when needed and closed when idle. Default 4.
	MaxConns int `toml:"max_conns"`
}

// Control says how a node keeps what the database holds, and who may change it.
type Control struct {
	// SnapshotFile keeps the last rules of the database, for a start while it is down. Default: none.
	SnapshotFile string `toml:"snapshot_file"`
	// Pepper is the key under which API keys and operators' tokens are hashed, at least 32 characters. All nodes must use the same, and
	// without it none are accepted.
	Pepper Secret `toml:"pepper"`
	// OIDC lets operators sign in at an identity provider.
	OIDC OIDC `toml:"oidc"`
}

// OIDC is an identity provider for operators. Without an issuer there is none.
type OIDC struct {
	// Issuer is the provider's URL, https, or http on this machine. Default: none.
	Issuer string `toml:"issuer"`
	// ClientID is our name there. Required with an issuer.
	ClientID string `toml:"client_id"`
	// ClientSecret is what proves it, where the provider asks for one. Default: none.
	ClientSecret Secret `toml:"client_secret"`
	// RedirectURL is where the provider sends operators back, such as https://sluice.example.com/v1/auth/callback. Required with
	// an issuer.
	RedirectURL string `toml:"redirect_url"`
	// GrantsClaim names the claim with the operator's grants, a list of namespace:role such as "*:viewer". Default "sluice_grants".
	GrantsClaim string `toml:"grants_claim"`
	// Scopes are asked for besides openid. Default ["profile", "email"].
	Scopes []string `toml:"scopes"`
}

// Secret is text that is not shown.
type Secret string

const redacted = "[redacted]"

// String hides the secret, so that it reaches no log. An empty one is shown as empty.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString hides the secret.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Reveal returns the secret itself.
func (s Secret) Reveal() string { return string(s) }
