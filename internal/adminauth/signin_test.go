package adminauth

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sluicehq/sluice/internal/registry"
)

// provider is an identity provider that signs anybody in, and holds clients to PKCE.
type provider struct {
	*httptest.Server
	key *rsa.PrivateKey

	mu     sync.Mutex
	asked  url.Values     // by the last redirect
	claims map[string]any // told about whoever comes
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{key: key, claims: map[string]any{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		p.answer(w, map[string]any{
			"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		encode := base64.RawURLEncoding.EncodeToString
		p.answer(w, map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "kid": "1", "alg": "RS256", "use": "sig", "n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
		}}})
	})
	mux.HandleFunc("POST /token", p.token)
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func (p *provider) answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}

func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	challenge := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if base64.RawURLEncoding.EncodeToString(challenge[:]) != p.asked.Get("code_challenge") || r.FormValue("code") != "the-code" {
		http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
		return
	}
	claims := jwt.MapClaims{"iss": p.URL, "aud": "sluice", "sub": "s-1", "exp": time.Now().Add(time.Minute).Unix(), "iat": time.Now().Unix(), "nonce": p.asked.Get("nonce")}
	for name, value := range p.claims {
		claims[name] = value
	}
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	token.Header["kid"] = "1"
	text, err := token.SignedString(p.key)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	p.answer(w, map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": text})
}

func (p *provider) signIn(t *testing.T, now func() time.Time) *SignIn {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}, Timeout: providerTimeout}
	t.Cleanup(client.CloseIdleConnections)
	s, err := NewSignIn(pepper, SignInOptions{
		Issuer: p.URL, ClientID: "sluice", RedirectURL: "https://sluice.example/v1/auth/callback", GrantsClaim: "sluice_grants", Now: now, Client: client,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// serve answers a request with the cookies that were given before.
func serve(t *testing.T, s *SignIn, method, path string, cookies []*http.Cookie) *http.Response {
	t.Helper()
	mux := http.NewServeMux()
	for pattern, h := range s.Routes() {
		mux.Handle(pattern, h)
	}
	r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	for _, c := range cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w.Result()
}

// begin goes to the provider and returns what it sends back.
func begin(t *testing.T, p *provider, s *SignIn) (callback string, cookies []*http.Cookie) {
	t.Helper()
	resp := serve(t, s, http.MethodGet, "/v1/auth/login", nil)
	defer resp.Body.Close()
	to, err := resp.Location()
	if err != nil || resp.StatusCode != http.StatusSeeOther || !strings.HasPrefix(to.String(), p.URL+"/authorize") {
		t.Fatalf("%d to %v, %v", resp.StatusCode, to, err)
	}
	if to.Query().Get("code_challenge_method") != "S256" {
		t.Errorf("no PKCE: %s", to)
	}
	p.mu.Lock()
	p.asked = to.Query()
	p.mu.Unlock()
	return "/v1/auth/callback?code=the-code&state=" + url.QueryEscape(to.Query().Get("state")), resp.Cookies()
}

// who is what a session cookie says.
func who(t *testing.T, s *SignIn, cookies []*http.Cookie) (registry.Actor, error) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	for _, c := range cookies {
		if c.MaxAge > 0 {
			r.AddCookie(c)
		}
	}
	return New(Options{SignIn: s}).Authenticate(r)
}

func TestSignIn_MakesASessionOfWhatTheProviderSays(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	p.claims = map[string]any{"sluice_grants": []string{"own:operator"}, "email": "ann@example.com", "email_verified": true}
	now := time.Now()
	s := p.signIn(t, func() time.Time { return now })
	callback, cookies := begin(t, p, s)
	resp := serve(t, s, http.MethodGet, callback, cookies)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d", resp.StatusCode)
	}
	for _, c := range append(cookies, resp.Cookies()...) {
		if !strings.HasPrefix(c.Name, "__Host-") || !c.Secure || !c.HttpOnly || c.Path != "/" || c.Domain != "" {
			t.Errorf("cookie %+v", c)
		}
		if c.Name == sessionCookie && c.SameSite != http.SameSiteStrictMode {
			t.Errorf("session cookie %+v", c)
		}
	}
	actor, err := who(t, s, resp.Cookies())
	if err != nil || actor.Name != "user ann@example.com" || !May(actor, registry.Operator, "own") || May(actor, registry.Viewer, "other") {
		t.Errorf("%+v, %v", actor, err)
	}
	// Another node with the same pepper knows the session; one with another does not.
	if _, err := who(t, p.signIn(t, nil), resp.Cookies()); err != nil {
		t.Errorf("on another node: %v", err)
	}
	other, err := NewSignIn("another-pepper-of-at-least-32-chars", SignInOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := who(t, other, resp.Cookies()); err == nil {
		t.Error("a session under another pepper is taken")
	}
	now = now.Add(sessionLasts)
	if _, err := who(t, s, resp.Cookies()); err == nil {
		t.Error("a session does not end")
	}
}

func TestSignIn_RefusesWhatIsNotTheAnswerToItsOwnQuestion(t *testing.T) {
	t.Parallel()
	granted := map[string]any{"sluice_grants": []string{"*:admin"}}
	for name, c := range map[string]struct {
		claims map[string]any
		spoil  func(p *provider, callback *string, cookies *[]*http.Cookie)
		status int
	}{
		"no cookie":      {granted, func(_ *provider, _ *string, c *[]*http.Cookie) { *c = nil }, http.StatusUnauthorized},
		"another state":  {granted, func(_ *provider, to *string, _ *[]*http.Cookie) { *to = "/v1/auth/callback?code=the-code&state=x" }, http.StatusUnauthorized},
		"another code":   {granted, func(_ *provider, to *string, _ *[]*http.Cookie) { *to = strings.Replace(*to, "the-code", "stolen", 1) }, http.StatusUnauthorized},
		"no PKCE":        {granted, func(p *provider, _ *string, _ *[]*http.Cookie) { p.asked.Set("code_challenge", "x") }, http.StatusUnauthorized},
		"another nonce":  {granted, func(p *provider, _ *string, _ *[]*http.Cookie) { p.asked.Set("nonce", "x") }, http.StatusUnauthorized},
		"other audience": {map[string]any{"sluice_grants": []string{"*:admin"}, "aud": "other"}, nil, http.StatusUnauthorized},
		"expired":        {map[string]any{"sluice_grants": []string{"*:admin"}, "exp": 1}, nil, http.StatusUnauthorized},
		"no grants":      {map[string]any{"sluice_grants": []string{"*:king"}}, nil, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			p.claims = c.claims
			s := p.signIn(t, nil)
			callback, cookies := begin(t, p, s)
			if c.spoil != nil {
				c.spoil(p, &callback, &cookies)
			}
			resp := serve(t, s, http.MethodGet, callback, cookies)
			defer resp.Body.Close()
			if _, err := who(t, s, resp.Cookies()); resp.StatusCode != c.status || err == nil {
				t.Errorf("status %d, session %v", resp.StatusCode, err)
			}
		})
	}
}

func TestSignIn_WithAProviderThatIsDownIsTemporary(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	s := p.signIn(t, nil)
	p.Close()
	resp := serve(t, s, http.MethodGet, "/v1/auth/login", nil)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("status %d", resp.StatusCode)
	}
	out := serve(t, s, http.MethodPost, "/v1/auth/logout", nil)
	defer out.Body.Close()
	if out.StatusCode != http.StatusNoContent || out.Cookies()[0].MaxAge >= 0 {
		t.Errorf("logout: %d %v", out.StatusCode, out.Cookies())
	}
}
