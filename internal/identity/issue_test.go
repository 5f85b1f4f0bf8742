package identity_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/identity"
)

// testKeys are made once: RSA takes a while.
var testKeys = sync.OnceValue(func() map[string]crypto.Signer {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	p256, err2 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	p384, err3 := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	_, ed, err4 := ed25519.GenerateKey(rand.Reader)
	other, err5 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	for _, err := range []error{err, err2, err3, err4, err5} {
		if err != nil {
			panic(err)
		}
	}
	return map[string]crypto.Signer{"rsa": rsaKey, "p256": p256, "p384": p384, "ed": ed, "other": other}
})

// jwk is a key as an issuer publishes it.
func jwk(kid string, key crypto.Signer) map[string]any {
	enc := base64.RawURLEncoding.EncodeToString
	switch k := key.Public().(type) {
	case *rsa.PublicKey:
		return map[string]any{"kty": "RSA", "kid": kid, "use": "sig", "n": enc(k.N.Bytes()), "e": enc(big.NewInt(int64(k.E)).Bytes())}
	case *ecdsa.PublicKey:
		b, err := k.Bytes()
		if err != nil {
			panic(err)
		}
		half := len(b) / 2
		return map[string]any{"kty": "EC", "kid": kid, "crv": k.Curve.Params().Name, "x": enc(b[1 : 1+half]), "y": enc(b[1+half:])}
	case ed25519.PublicKey:
		return map[string]any{"kty": "OKP", "kid": kid, "crv": "Ed25519", "x": enc(k)}
	}
	panic("no such key")
}

// jwks is a set of all test keys but the one called other.
func jwks(more ...map[string]any) string {
	keys := more
	for _, name := range []string{"rsa", "p256", "p384", "ed"} {
		keys = append(keys, jwk(name, testKeys()[name]))
	}
	text, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		panic(err)
	}
	return string(text)
}

const issuerName, audience = "https://id.example", "api"

// claims are good until they are changed; nil takes one away.
func claims(changes ...any) jwt.MapClaims {
	c := jwt.MapClaims{"iss": issuerName, "aud": audience, "sub": "u_42", "exp": time.Now().Add(time.Hour).Unix()}
	for i := 0; i < len(changes); i += 2 {
		if c[changes[i].(string)] = changes[i+1]; changes[i+1] == nil {
			delete(c, changes[i].(string))
		}
	}
	return c
}

// sign signs with any method; header fields come in pairs.
func sign(t testing.TB, method jwt.SigningMethod, key any, c jwt.Claims, header ...any) string {
	t.Helper()
	token := jwt.NewWithClaims(method, c)
	for i := 0; i < len(header); i += 2 {
		token.Header[header[i].(string)] = header[i+1]
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func es256(t testing.TB, c jwt.Claims) string {
	t.Helper()
	return sign(t, jwt.SigningMethodES256, testKeys()["p256"], c, "kid", "p256")
}

// server answers like an issuer, without a network, and counts.
type server struct {
	mu     sync.Mutex
	times  []time.Time
	answer func(*http.Request) (int, string)
}

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times = append(s.times, time.Now())
	status, body := s.answer(req)
	if status == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Request: req, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Location": {"https://elsewhere.example/keys"}}, Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

func (s *server) fetches() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Time(nil), s.times...)
}

func (s *server) set(status int, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = func(*http.Request) (int, string) { return status, body }
}

func newServer(status int, body string) *server {
	s := &server{}
	s.set(status, body)
	return s
}

// issuerByURL believes what the test's issuer signs.
func issuerByURL() config.Issuer {
	return config.Issuer{
		Issuer: issuerName, Audience: audience, JWKSURL: "https://id.example/keys",
		Algorithms:  []string{"RS256", "PS256", "ES256", "ES384", "EdDSA"},
		TenantClaim: "org", TierClaim: "plan",
	}
}

func newResolver(t testing.TB, cfg config.Identity, opts identity.Options) *identity.Resolver {
	t.Helper()
	r, err := identity.New(cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
