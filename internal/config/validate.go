package config

import (
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/internal/ruledoc"
	"github.com/sluicehq/sluice/redisstore/rueidisconn"
)

// minToken is how short the operators' token may be. 16 random characters are beyond guessing over a network.
const minToken = 16

// validate checks the whole. Rules are checked where they are compiled, together with those of other files.
func (l *loader) validate() {
	l.checkListeners()
	l.checkAdmin()
	l.checkRedis()
	l.checkNumbers()
	l.checkGateway()
	l.checkIdentity()
	l.checkAnswers()
	l.checkDatabase()
	l.checkControl()
	l.oneOf("log.level", l.cfg.Log.Level, logLevels)
	l.oneOf("log.format", l.cfg.Log.Format, logFormats)
	if strings.TrimSpace(l.cfg.Node) == "" {
		l.wrong("node", "is empty", "leave it out to use the host's name")
	}
}

// What fields of few values can be. Whoever adds one to the struct's comment adds it here; the schema is made from these.
var (
	logLevels      = []string{"debug", "info", "warn", "error"}
	logFormats     = []string{"auto", "text", "json"}
	orders         = []string{"api_key", "jwt", "header"}
	forwardHeaders = []string{"x-forwarded-for", "forwarded"}
	dialects       = []string{"ietf", "x-ratelimit", "none"}
	algorithms     = []string{
		"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "HS256", "HS384", "HS512",
	}
)

// wrong reports a fault of the value at a path, unless it could not be read in the first place.
func (l *loader) wrong(path, problem, hint string) {
	origin := l.originOf(path)
	if slices.ContainsFunc(l.unread, func(f Fault) bool {
		return f.Origin.Kind == origin.Kind && (f.Field == path || strings.HasPrefix(f.Field, path+"["))
	}) {
		return
	}
	l.fault(Fault{Origin: origin, Field: path, Problem: problem, Hint: hint})
}

// originOf is where a value was written, or the table that lacks it.
func (l *loader) originOf(path string) Origin {
	for p := path; p != ""; p = p[:max(strings.LastIndexByte(p, '.'), strings.LastIndexByte(p, '['), 0)] {
		if o, found := l.origins[p]; found {
			return o
		}
	}
	return Origin{}
}

func (l *loader) warn(format string, args ...any) {
	l.warnings = append(l.warnings, fmt.Sprintf(format, args...))
}

func (l *loader) oneOf(path, value string, allowed []string) {
	if slices.Contains(allowed, value) {
		return
	}
	l.wrong(path, fmt.Sprintf("%q is not known", value), oneOf(allowed))
}

// listOf checks a list of which each element may occur once.
func (l *loader) listOf(path string, values, allowed []string) {
	for i, v := range values {
		l.oneOf(indexed(path, i), v, allowed)
		if slices.Contains(values[:i], v) {
			l.wrong(indexed(path, i), fmt.Sprintf("%q is listed twice", v), "")
		}
	}
}

func (l *loader) atLeast(path string, value, least int64) {
	if value < least {
		l.wrong(path, fmt.Sprintf("is %d", value), fmt.Sprintf("want %d or more", least))
	}
}

func (l *loader) positive(path string, d ruledoc.Duration) {
	if d <= 0 {
		l.wrong(path, "is "+d.String(), "want a duration above zero, such as \"5s\"")
	}
}

func (l *loader) checkAdmin() {
	token := l.cfg.Admin.Token.Reveal()
	if token == "" {
		return
	}
	if len(token) < minToken {
		l.wrong("admin.token", fmt.Sprintf("has %d characters", len(token)), fmt.Sprintf("want %d or more, random ones", minToken))
	}
	// It is sent in a header field, where spaces end it and others are not allowed.
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		l.wrong("admin.token", "has characters other than visible ASCII", "want letters, digits and signs, without spaces")
	}
}

func (l *loader) checkRedis() {
	r := &l.cfg.Redis
	if key := r.HashKey.Reveal(); key != "" {
		if _, err := hex.DecodeString(key); err != nil || len(key) != 32 {
			l.wrong("redis.hash_key", "is not 32 hexadecimal digits", "make one with: openssl rand -hex 16")
		}
	}
	if (r.CertFile == "") != (r.KeyFile == "") {
		l.wrong("redis.cert_file", "certificate and key go together", "set both redis.cert_file and redis.key_file")
	}
	if r.URL == MemoryURL {
		return
	}
	opts, err := rueidisconn.ParseURL(r.URL)
	if err != nil {
		l.wrong("redis.url", err.Error(), "")
		return
	}
	if opts.TLS == nil {
		for path, value := range map[string]string{"redis.ca_file": r.CAFile, "redis.cert_file": r.CertFile} {
			if value != "" {
				l.wrong(path, "is used with TLS only", "begin redis.url with rediss://")
			}
		}
	}
	if secret := r.Password != "" || opts.Password != ""; secret && opts.TLS == nil && !allLoopback(opts.Addrs) {
		l.warn("redis.url: the password is sent to Redis in plain text; begin it with rediss:// to encrypt it")
	}
}

func (l *loader) checkNumbers() {
	c := &l.cfg
	l.atLeast("http.max_in_flight", int64(c.HTTP.MaxInFlight), 1)
	l.positive("limiter.timeout", c.Limiter.Timeout)
	l.atLeast("limiter.nodes", int64(c.Limiter.Nodes), 0)
	l.atLeast("limiter.fallback_counters", int64(c.Limiter.FallbackCounters), 1)
	l.atLeast("shutdown.grace", int64(c.Shutdown.Grace), 0)
	l.positive("shutdown.drain", c.Shutdown.Drain)
}

func (l *loader) checkAnswers() {
	a := &l.cfg.Answers
	l.listOf("answers.headers", a.Headers, dialects)
	if len(a.Headers) > 1 && slices.Contains(a.Headers, "none") {
		l.wrong("answers.headers", "\"none\" stands beside others", "write [\"none\"] alone")
	}
	if s := a.ForwardAuthDenied; s != 0 && (s < 400 || s > 499) {
		l.wrong("answers.forward_auth_denied", "is "+strconv.Itoa(s), "want a status from 400 to 499")
	}
}

// allLoopback tells that traffic to these addresses does not leave the machine.
func allLoopback(addrs []string) bool {
	return !slices.ContainsFunc(addrs, func(addr string) bool {
		host, _, err := net.SplitHostPort(addr)
		return err != nil || !loopback(host)
	})
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
