package identity_test

import (
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/identity"
)

func BenchmarkSubject(b *testing.B) {
	k := testKeys()
	r := newResolver(b, byFile(b, jwks(), nil), identity.Options{})
	plain := newResolver(b, config.Identity{TrustedProxies: proxies()}, identity.Options{})
	rs := fields("Authorization", "Bearer "+sign(b, jwt.SigningMethodRS256, k["rsa"], claims(), "kid", "rsa"))
	unknown := fields("Authorization", "Bearer "+sign(b, jwt.SigningMethodES256, k["other"], claims(), "kid", "none"))
	forged := fields("Authorization", "Bearer "+sign(b, jwt.SigningMethodES256, k["other"], claims(), "kid", "p256"))
	behind := fields("X-Forwarded-For", "1.1.1.1, 203.0.113.9")
	ctx := b.Context()
	for _, c := range []struct {
		name string
		call func()
	}{
		{"address", func() { plain.Subject(ctx, client, nil) }},
		{"address behind a proxy", func() { plain.Subject(ctx, proxy, behind) }},
		{"token seen before", func() { r.Subject(ctx, client, rs) }},
		{"token of an unknown key", func() { r.Subject(ctx, client, unknown) }},
		{"forged ES256 token", func() { r.Subject(ctx, client, forged) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.call()
			}
		})
	}
}
