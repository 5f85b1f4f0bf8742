package adminauth

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// sealer puts small values into cookies that nobody but holders of the same pepper can read or make: any node takes what another gave.
type sealer struct {
	aead cipher.AEAD
	now  func() time.Time
}

// sealed is a value with its end.
type sealed struct {
	Until time.Time       `json:"until"`
	Value json.RawMessage `json:"value"`
}

func newSealer(pepper string, now func() time.Time) (*sealer, error) {
	key, err := hkdf.Key(sha256.New, []byte(pepper), nil, "sluice admin sessions", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return &sealer{aead, now}, err
}

// maxCookie is what browsers keep at least.
const maxCookie = 4096

var errCookie = errors.New("no cookie of ours, or its time has passed")

// set seals a value into a cookie.
func (s *sealer) set(w http.ResponseWriter, name string, value any, lasts time.Duration, site http.SameSite) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	text, err = json.Marshal(sealed{s.now().Add(lasts), text})
	if err != nil {
		return err
	}
	// The name is sealed with it, so that one cookie cannot be sent as another.
	packed := base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, text, []byte(name))) //nolint:gosec // it makes a random nonce itself
	if len(packed) > maxCookie-256 {
		return errors.New("there is too much to remember for a cookie: give fewer grants, or \"*\"")
	}
	http.SetCookie(w, cookie(name, packed, int(lasts/time.Second), site))
	return nil
}

// get opens a cookie.
func (s *sealer) get(r *http.Request, name string, into any) error {
	c, err := r.Cookie(name)
	if err != nil || len(c.Value) > maxCookie {
		return errCookie
	}
	packed, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return errCookie
	}
	text, err := s.aead.Open(nil, nil, packed, []byte(name))
	if err != nil {
		return errCookie
	}
	var v sealed
	if err := json.Unmarshal(text, &v); err != nil || !s.now().Before(v.Until) {
		return errCookie
	}
	return json.Unmarshal(v.Value, into)
}

// cookie has the attributes that the prefix __Host- asks for: only this host, only encrypted, out of reach of scripts.
func cookie(name, value string, maxAge int, site http.SameSite) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: maxAge, Secure: true, HttpOnly: true, SameSite: site} //nolint:gosec // Lax or Strict, as the caller says
}

func clearCookie(w http.ResponseWriter, name string, site http.SameSite) {
	http.SetCookie(w, cookie(name, "", -1, site))
}

// nonce is unguessable.
func nonce() string { return rand.Text() }
