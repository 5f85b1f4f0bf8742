package identity_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sluicehq/sluice/internal/config"
	"github.com/sluicehq/sluice/internal/identity"
)

// running returns a resolver that believes the server's keys, with Run under way until the test ends.
func running(t *testing.T, s *server) *identity.Resolver {
	t.Helper()
	cfg := config.Identity{JWT: []config.Issuer{issuerByURL()}}
	r := newResolver(t, cfg, identity.Options{Client: &http.Client{Transport: s}})
	start(t, r)
	return r
}

func start(t *testing.T, r *identity.Resolver) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	synctest.Wait()
}

func later(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// mostInTenSeconds returns how many fetches any ten seconds held.
func mostInTenSeconds(fetches []time.Time) int {
	most := 0
	for i := range fetches {
		n := 0
		for _, f := range fetches[i:] {
			if f.Sub(fetches[i]) < 10*time.Second {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

func TestKeys_RandomNamesFetchAtMostOncePerTenSeconds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		status, names int
	}{{"good answers", 200, 100_000}, {"errors", 500, 5000}, {"broken connections", 0, 5000}, {"redirects", 302, 5000}, {"no content", 204, 5000}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			testKeys() // outside of the bubble
			synctest.Test(t, func(t *testing.T) {
				s := newServer(c.status, jwks())
				r := running(t, s)
				_, rest, _ := strings.Cut(es256(t, claims()), ".")
				for n := range c.names {
					header := fmt.Sprintf(`{"alg":"ES256","kid":"%d-%d"}`, n, n*7919)
					if got := user(t, r, base64.RawURLEncoding.EncodeToString([]byte(header))+"."+rest); got != "" {
						t.Fatalf("name %d: got user %q, want none", n, got)
					}
					if n%(c.names/100) == 0 {
						later(time.Second) // 100 s in all
					}
				}
				fetches := s.fetches()
				if most := mostInTenSeconds(fetches); most != 1 || len(fetches) < 9 || len(fetches) > 11 {
					t.Errorf("%d fetches in 100 s, at most %d in 10 s; want about 10, at most 1", len(fetches), most)
				}
			})
		})
	}
}

func TestKeys_AreLoadedAtStartAndEveryFiveMinutes(t *testing.T) {
	t.Parallel()
	testKeys()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(200, jwks())
		r := running(t, s)
		if got := user(t, r, es256(t, claims())); got != "u_42" {
			t.Errorf("after the start: got user %q, want u_42", got)
		}
		later(time.Hour)
		if n := len(s.fetches()); n < 10 || n > 13 {
			t.Errorf("%d fetches in an hour, want 10 to 13", n)
		}
	})
}

func TestKeys_ANewOneIsKnownWithinTheCooldown(t *testing.T) {
	t.Parallel()
	testKeys()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(200, jwks())
		r := running(t, s)
		later(time.Minute)
		token := sign(t, jwt.SigningMethodES256, testKeys()["other"], claims(), "kid", "new")
		s.set(200, jwks(jwk("new", testKeys()["other"])))
		if got := user(t, r, token); got != "" {
			t.Errorf("at first: got user %q, want none", got)
		}
		synctest.Wait()
		if got := user(t, r, token); got != "u_42" {
			t.Errorf("once it was asked for: got user %q, want u_42", got)
		}
	})
}

func TestKeys_OldOnesStayWhileTheIssuerFails(t *testing.T) {
	t.Parallel()
	testKeys()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(200, jwks())
		r := running(t, s)
		token := func() string { return es256(t, claims("exp", time.Now().Add(time.Hour).Unix())) }
		tooMany := make([]map[string]any, 101)
		for i := range tooMany {
			tooMany[i] = jwk(fmt.Sprint(i), testKeys()["ed"])
		}
		for _, bad := range []struct {
			status int
			body   string
			why    string
		}{
			{500, jwks(), "answered"},
			{0, "", "unexpected EOF"},
			{302, jwks(), "answered"},
			{200, "{", "read key set"},
			{200, `{"keys":[]}`, "no usable key"},
			{200, `{"keys":[{"kty":"oct","k":"AAAA"}]}`, "no usable key"},
			{200, jwks() + strings.Repeat(" ", 64<<10), "larger than 65536"},
			{200, jwks(tooMany...), "more than 100"},
		} {
			s.set(bad.status, bad.body)
			later(10 * time.Minute)
			status := r.Keys()[0]
			if status.Err == nil || !strings.Contains(status.Err.Error(), bad.why) || status.Keys != 4 {
				t.Errorf("%d %.20q: got %d keys and error %v; want 4 and %q", bad.status, bad.body, status.Keys, status.Err, bad.why)
			}
			if got := user(t, r, token()); got != "u_42" {
				t.Errorf("%d %.20q: got user %q, want u_42", bad.status, bad.body, got)
			}
		}
		s.set(200, jwks())
		later(time.Minute)
		if status := r.Keys()[0]; status.Err != nil {
			t.Errorf("once it works again: %v", status.Err)
		}
	})
}

func TestKeys_OneTakenBackEndsRememberedTokens(t *testing.T) {
	t.Parallel()
	testKeys()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(200, jwks())
		r := running(t, s)
		token := es256(t, claims("exp", time.Now().Add(time.Hour).Unix()))
		if got := user(t, r, token); got != "u_42" {
			t.Fatalf("got user %q, want u_42", got)
		}
		only, err := json.Marshal(map[string]any{"keys": []any{jwk("rsa", testKeys()["rsa"])}})
		if err != nil {
			t.Fatal(err)
		}
		s.set(200, string(only))
		later(6 * time.Minute)
		if got := user(t, r, token); got != "" {
			t.Errorf("after the key is gone: got user %q, want none", got)
		}
	})
}

func TestKeys_AHangingIssuerHoldsUpNobody(t *testing.T) {
	t.Parallel()
	testKeys()
	synctest.Test(t, func(t *testing.T) {
		good, other := issuerByURL(), issuerByURL()
		other.Issuer, other.JWKSURL = "https://slow.example", "https://slow.example/keys"
		transport := roundTrip(func(req *http.Request) (*http.Response, error) {
			if req.URL.Host == "slow.example" {
				<-req.Context().Done()
				return nil, req.Context().Err()
			}
			return newServer(200, jwks()).RoundTrip(req)
		})
		r := newResolver(t, config.Identity{JWT: []config.Issuer{other, good}}, identity.Options{Client: &http.Client{Transport: transport}})
		start(t, r)
		if got := user(t, r, es256(t, claims())); got != "u_42" {
			t.Errorf("got user %q, want u_42", got)
		}
		if got := user(t, r, es256(t, claims("iss", other.Issuer))); got != "" {
			t.Errorf("the hanging issuer's: got user %q, want none", got)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestInherit_KeepsKeysAndCooldown(t *testing.T) {
	t.Parallel()
	testKeys()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(200, jwks())
		old := running(t, s)
		cfg := config.Identity{JWT: []config.Issuer{issuerByURL()}, Order: []string{"jwt"}}
		r := newResolver(t, cfg, identity.Options{Client: &http.Client{Transport: s}})
		r.Inherit(old)
		if got := user(t, r, es256(t, claims())); got != "u_42" {
			t.Errorf("at once: got user %q, want u_42", got)
		}
		start(t, r)
		if n := len(s.fetches()); n != 1 {
			t.Errorf("%d fetches, want 1: the second resolver waits", n)
		}
	})
}

func TestKeys_FileIsReadAgain(t *testing.T) {
	t.Parallel()
	testKeys()
	synctest.Test(t, func(t *testing.T) {
		cfg := byFile(t, jwks(), nil)
		r := newResolver(t, cfg, identity.Options{})
		start(t, r)
		token := sign(t, jwt.SigningMethodES256, testKeys()["other"], claims(), "kid", "new")
		if err := os.WriteFile(cfg.JWT[0].JWKSFile, []byte(jwks(jwk("new", testKeys()["other"]))), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := user(t, r, token); got != "" {
			t.Errorf("at first: got user %q, want none", got)
		}
		later(11 * time.Second)
		if got := user(t, r, token); got != "u_42" {
			t.Errorf("later: got user %q, want u_42", got)
		}
	})
}

func TestKeys_OverARealConnection(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked.Add(1)
		if req.URL.Path == "/moved" {
			http.Redirect(w, req, "/keys", http.StatusFound)
			return
		}
		_, _ = w.Write([]byte(jwks()))
	}))
	t.Cleanup(keys.Close)
	for path, want := range map[string]string{"/keys": "u_42", "/moved": ""} {
		issuer := issuerByURL()
		issuer.JWKSURL = keys.URL + path // plain http, to a loopback address
		r := newResolver(t, config.Identity{JWT: []config.Issuer{issuer}}, identity.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		for r.Keys()[0].Asked.IsZero() || r.Keys()[0].Keys == 0 && r.Keys()[0].Err == nil {
			select {
			case <-time.After(time.Millisecond):
			case <-t.Context().Done():
				t.Fatal("the keys were not loaded")
			}
		}
		if got := user(t, r, es256(t, claims())); got != want {
			t.Errorf("%s: got user %q, want %q", path, got, want)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("%s: Run returned %v", path, err)
		}
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("%d requests, want 2: no redirect is followed", n)
	}
}
