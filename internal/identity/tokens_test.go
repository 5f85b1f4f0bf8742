package identity_test

import (
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/identity"
)

const secret = "0123456789abcdef0123456789abcdef"

func hs256(t testing.TB, c jwt.Claims) string {
	t.Helper()
	return sign(t, jwt.SigningMethodHS256, []byte(secret), c)
}

// byFile believes the keys of the test, without anything to run.
func byFile(t testing.TB, set string, change func(*config.Issuer)) config.Identity {
	t.Helper()
	issuer := issuerByURL()
	issuer.JWKSURL, issuer.JWKSFile = "", filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(issuer.JWKSFile, []byte(set), 0o600); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&issuer)
	}
	return config.Identity{JWT: []config.Issuer{issuer}}
}

func user(t testing.TB, r *identity.Resolver, token string) string {
	t.Helper()
	return r.Subject(t.Context(), client, fields("Authorization", "Bearer "+token)).User
}

func TestToken_IsBelievedWhenSignedByTheIssuer(t *testing.T) {
	t.Parallel()
	r, k := newResolver(t, byFile(t, jwks(), nil), identity.Options{}), testKeys()
	now := time.Now()
	for name, token := range map[string]string{
		"RS256":                      sign(t, jwt.SigningMethodRS256, k["rsa"], claims(), "kid", "rsa"),
		"PS256":                      sign(t, jwt.SigningMethodPS256, k["rsa"], claims(), "kid", "rsa"),
		"ES256":                      es256(t, claims()),
		"ES384":                      sign(t, jwt.SigningMethodES384, k["p384"], claims(), "kid", "p384"),
		"EdDSA":                      sign(t, jwt.SigningMethodEdDSA, k["ed"], claims(), "kid", "ed"),
		"no kid, one key fits":       sign(t, jwt.SigningMethodES256, k["p256"], claims()),
		"several audiences":          es256(t, claims("aud", []string{"other", audience})),
		"expired within the leeway":  es256(t, claims("exp", now.Add(-20*time.Second).Unix())),
		"not yet, within the leeway": es256(t, claims("nbf", now.Add(20*time.Second).Unix())),
		"jku, x5u and jwk ignored":   sign(t, jwt.SigningMethodES256, k["p256"], claims(), "kid", "p256", "jku", "https://evil.example", "x5u", "https://evil.example", "jwk", jwk("p256", k["other"])),
	} {
		if got := user(t, r, token); got != "u_42" {
			t.Errorf("%s: got user %q, want u_42", name, got)
		}
	}
}

func TestToken_IsNotBelievedOtherwise(t *testing.T) {
	t.Parallel()
	r, k := newResolver(t, byFile(t, jwks(), nil), identity.Options{}), testKeys()
	good, now := es256(t, claims()), time.Now()
	parts := strings.Split(good, ".")
	none, err := jwt.NewWithClaims(jwt.SigningMethodNone, claims()).SignedString(jwt.UnsafeAllowNoneSignatureType)
	if err != nil {
		t.Fatal(err)
	}
	header := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	publicPart := []byte(jwks())
	for name, token := range map[string]string{
		"no signature":                        parts[0] + "." + parts[1] + ".",
		"none":                                none,
		"None in capitals":                    header(`{"alg":"NONE"}`) + "." + parts[1] + ".",
		"no algorithm":                        header(`{"kid":"p256"}`) + "." + parts[1] + "." + parts[2],
		"other claims under the signature":    parts[0] + "." + header(`{"sub":"admin"}`) + "." + parts[2],
		"two parts":                           parts[0] + "." + parts[1],
		"four parts":                          good + ".x",
		"five parts, encrypted":               good + ".x.y",
		"public key as shared secret":         sign(t, jwt.SigningMethodHS256, publicPart, claims(), "kid", "rsa"),
		"another key under the known name":    sign(t, jwt.SigningMethodES256, k["other"], claims(), "kid", "p256"),
		"its own key in jwk":                  sign(t, jwt.SigningMethodES256, k["other"], claims(), "jwk", jwk("x", k["other"])),
		"its own key by jku":                  sign(t, jwt.SigningMethodES256, k["other"], claims(), "kid", "other", "jku", "https://evil.example"),
		"unknown kid":                         sign(t, jwt.SigningMethodES256, k["p256"], claims(), "kid", "p999"),
		"kid is a number":                     sign(t, jwt.SigningMethodES256, k["p256"], claims(), "kid", 1),
		"key of another kind":                 sign(t, jwt.SigningMethodES256, k["p256"], claims(), "kid", "rsa"),
		"critical extension":                  sign(t, jwt.SigningMethodES256, k["p256"], claims(), "kid", "p256", "crit", []string{"b64"}, "b64", false),
		"algorithm not listed":                sign(t, jwt.SigningMethodRS512, k["rsa"], claims(), "kid", "rsa"),
		"another issuer":                      es256(t, claims("iss", "https://evil.example")),
		"no issuer":                           es256(t, claims("iss", nil)),
		"another audience":                    es256(t, claims("aud", "billing")),
		"no audience":                         es256(t, claims("aud", nil)),
		"audience begins alike":               es256(t, claims("aud", audience+"2")),
		"expired":                             es256(t, claims("exp", now.Add(-40*time.Second).Unix())),
		"no expiry":                           es256(t, claims("exp", nil)),
		"expiry is text":                      es256(t, claims("exp", "tomorrow")),
		"not yet":                             es256(t, claims("nbf", now.Add(40*time.Second).Unix())),
		"no user":                             es256(t, claims("sub", nil)),
		"empty user":                          es256(t, claims("sub", "")),
		"user is a number":                    es256(t, claims("sub", 42)),
		"user is a list":                      es256(t, claims("sub", []string{"u_42"})),
		"user of 256 characters":              es256(t, claims("sub", strings.Repeat("ü", 256))),
		"user with a line feed":               es256(t, claims("sub", "u_42\nadmin")),
		"tenant is a number":                  es256(t, claims("org", 7)),
		"more than 8 KB":                      es256(t, claims("x", strings.Repeat("x", 9000))),
		"padding that strict decoders refuse": good + "=",
		"space inside":                        parts[0] + ". " + parts[1] + "." + parts[2],
		"claims are null":                     sign(t, jwt.SigningMethodES256, k["p256"], jwt.MapClaims(nil), "kid", "p256"),
		"empty":                               "",
		"dots":                                "..",
	} {
		s := r.Subject(t.Context(), client, fields("Authorization", "Bearer "+token))
		if s.User != "" || s.Tenant != "" || s.Tier != "" || s.IP != client {
			t.Errorf("%s: got %+v, want the address alone", name, s)
		}
	}
	for name, h := range map[string]http.Header{
		"two tokens":     fields("Authorization", "Bearer "+good, "Authorization", "Bearer "+good),
		"no scheme":      fields("Authorization", good),
		"another scheme": fields("Authorization", "Basic "+good),
		"another field":  fields("X-Token", good),
	} {
		if s := r.Subject(t.Context(), client, h); s.User != "" {
			t.Errorf("%s: got user %q, want none", name, s.User)
		}
	}
}

func TestToken_ClaimsAndHeaderAreConfigured(t *testing.T) {
	t.Parallel()
	cfg := byFile(t, jwks(), func(i *config.Issuer) { i.UserClaim, i.Header = "email", "x-token" })
	r := newResolver(t, cfg, identity.Options{})
	token := es256(t, claims("email", "a@example.com", "org", "acme", "plan", "gold"))
	want := sluice.Subject{User: "a@example.com", Tenant: "acme", Tier: "gold", IP: client}
	for _, value := range []string{token, "Bearer " + token} {
		got := r.Subject(t.Context(), client, fields("X-Token", value))
		if got.User != want.User || got.Tenant != want.Tenant || got.Tier != want.Tier || got.IP != want.IP {
			t.Errorf("%.10s…: got %+v, want %+v", value, got, want)
		}
	}
	if got := user(t, r, token); got != "" {
		t.Errorf("in Authorization: got user %q, want none", got)
	}
}

func TestToken_IssuersDoNotSpeakForEachOther(t *testing.T) {
	t.Parallel()
	cfg := byFile(t, jwks(), nil)
	cfg.JWT = append(cfg.JWT, config.Issuer{Issuer: "internal", Audience: audience, Algorithms: []string{"HS256"}, Secret: secret, Header: "X-Internal"})
	r := newResolver(t, cfg, identity.Options{})
	internal := hs256(t, claims("iss", "internal", "sub", "job"))
	for _, c := range []struct {
		name string
		h    http.Header
		want string
	}{
		{"the second in its own field", fields("X-Internal", internal), "job"},
		{"the second in the first's field", fields("Authorization", "Bearer "+internal), ""},
		{"the first in the second's field", fields("X-Internal", es256(t, claims())), ""},
		{"the second's name with the first's key", fields("X-Internal", es256(t, claims("iss", "internal"))), ""},
		{"the first's name with the second's key", fields("Authorization", "Bearer "+hs256(t, claims())), ""},
		{"both, the first is bad", fields("Authorization", "Bearer x.y.z", "X-Internal", internal), "job"},
	} {
		if got := r.Subject(t.Context(), client, c.h).User; got != c.want {
			t.Errorf("%s: got user %q, want %q", c.name, got, c.want)
		}
	}
}

func TestToken_RememberedOneEndsWithItsExpiry(t *testing.T) {
	t.Parallel()
	now := time.Now()
	r := newResolver(t, byFile(t, jwks(), nil), identity.Options{Now: func() time.Time { return now }})
	token := es256(t, claims("exp", now.Add(time.Minute).Unix()))
	for _, step := range []struct {
		after time.Duration
		want  string
	}{{0, "u_42"}, {time.Second, "u_42"}, {85 * time.Second, "u_42"}, {91 * time.Second, ""}} {
		start := now
		now = now.Add(step.after)
		if got := user(t, r, token); got != step.want {
			t.Errorf("after %s: got user %q, want %q", step.after, got, step.want)
		}
		now = start
	}
}

func TestToken_MoreCallersThanAreRememberedAreAllKnown(t *testing.T) {
	t.Parallel()
	issuer := config.Issuer{Issuer: issuerName, Audience: audience, Algorithms: []string{"HS256"}, Secret: secret}
	r := newResolver(t, config.Identity{JWT: []config.Issuer{issuer}}, identity.Options{})
	for n := range 12_000 {
		name := "u_" + string(rune('a'+n%26)) + time.Duration(n).String()
		if got := user(t, r, hs256(t, claims("sub", name))); got != name {
			t.Fatalf("caller %d: got user %q, want %q", n, got, name)
		}
	}
}
