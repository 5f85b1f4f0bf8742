package identity_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/identity"
)

// FuzzJWT: no text but the one that was signed is a token. The signature's key is fixed, so that what the fuzzer finds stays
// found.
func FuzzJWT(f *testing.F) {
	issuer := config.Issuer{Issuer: issuerName, Audience: audience, Algorithms: []string{"HS256"}, Secret: secret}
	r := newResolver(f, config.Identity{JWT: []config.Issuer{issuer}}, identity.Options{})
	good := sign(f, jwt.SigningMethodHS256, []byte(secret), claims("exp", 4_000_000_000))
	parts := strings.Split(good, ".")
	f.Add(good)
	f.Add(parts[0] + "." + parts[1] + ".")
	f.Add("eyJhbGciOiJub25lIn0." + parts[1] + ".")
	f.Add("eyJhbGciOiJIUzI1NiIsImNyaXQiOltdfQ." + parts[1] + "." + parts[2])
	f.Add("..")
	f.Fuzz(func(t *testing.T, token string) {
		got := r.Subject(t.Context(), client, fields("Authorization", "Bearer "+token)).User
		want := ""
		if strings.TrimLeft(token, " ") == good {
			want = "u_42"
		}
		if got != want {
			t.Errorf("%q: got user %q, want %q", token, got, want)
		}
	})
}

// FuzzKeySet: any text is either refused or gives between 1 and 100 keys.
func FuzzKeySet(f *testing.F) {
	f.Add(jwks())
	f.Add(`{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}`)
	f.Add(`{"keys":[{"kty":"EC","crv":"P-256","x":"","y":""}]}`)
	f.Add(`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`)
	f.Add(`{"keys":[null,1,"",{}]}`)
	path := filepath.Join(f.TempDir(), "keys.json")
	issuer := config.Issuer{Issuer: issuerName, Audience: audience, Algorithms: []string{"RS256"}, JWKSFile: path}
	f.Fuzz(func(t *testing.T, set string) {
		if err := os.WriteFile(path, []byte(set), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := identity.New(config.Identity{JWT: []config.Issuer{issuer}}, identity.Options{})
		if err != nil {
			return
		}
		if n := r.Keys()[0].Keys; n < 1 || n > 100 {
			t.Errorf("%q: %d keys, want 1 to 100", set, n)
		}
	})
}
